"use strict";
// The page is complete without this script. It makes tables sortable, lets one filter and enlarge images, opens the fold that a
// link leads into, and unfolds everything for print.

const MISSING = "—";

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// Tables

function sortKey(row, column, numeric) {
  const cell = row.cells[column];
  if (numeric) return "sort" in cell.dataset ? Number(cell.dataset.sort) : null;
  const text = cell.textContent.trim();
  return text === MISSING ? null : text;
}

function sortRows(table, column, direction) {
  const numeric = table.tHead.rows[0].cells[column].classList.contains("number");
  const body = table.tBodies[0];
  const keyed = Array.from(body.rows, (row) => ({ row, key: sortKey(row, column, numeric) }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null); // missing last, both ways
    return direction * (numeric ? a.key - b.key : a.key.localeCompare(b.key, "en", { numeric: true }));
  });
  body.append(...keyed.map((entry) => entry.row));
}

function makeSortable(table) {
  const headings = Array.from(table.tHead.rows[0].cells);
  headings.forEach((heading, column) => {
    const button = make("button", { type: "button" }, ...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const order = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", order);
      sortRows(table, column, order === "ascending" ? 1 : -1);
    });
  });
}

document.querySelectorAll("table:not([data-unsorted])").forEach(makeSortable);

document.querySelectorAll(".table").forEach((region) => {
  region.addEventListener("scroll", () => region.classList.toggle("scrolled", region.scrollLeft > 0), { passive: true });
});

// One image, enlarged: arrows go to its neighbours, + and − change its size, Escape closes.

const lightbox = (() => {
  const SIDE = 384, LEAST = 96, MOST = 1536; // pixels of the longer side
  const image = make("img", { alt: "" });
  const facts = make("div", { className: "lightbox-facts" });
  facts.setAttribute("aria-live", "polite");
  const buttons = make("div", { className: "lightbox-buttons" });
  const dialog = make("dialog", { className: "lightbox" }, make("div", { className: "lightbox-image" }, image), facts, buttons);
  dialog.setAttribute("aria-label", "One image");
  let list = [], place = 0, side = SIDE, describe = null;

  function size(pixels) {
    side = Math.min(MOST, Math.max(LEAST, pixels));
    const longer = Math.max(image.naturalWidth, image.naturalHeight, 1);
    image.style.width = `${(side * image.naturalWidth) / longer}px`;
  }
  function show(next) {
    place = (next + list.length) % list.length;
    image.src = list[place].src;
    image.alt = list[place].alt;
    facts.replaceChildren(...describe(list[place]), make("p", { textContent: `${place + 1} of ${list.length}` }));
  }
  image.addEventListener("load", () => size(side));
  const actions = {
    ArrowLeft: () => show(place - 1), ArrowRight: () => show(place + 1), Home: () => show(0), End: () => show(list.length - 1),
    "-": () => size(side / 1.5), "+": () => size(side * 1.5), "=": () => size(side * 1.5), 0: () => size(SIDE),
  };
  const names = [["‹", "Previous image", "ArrowLeft"], ["›", "Next image", "ArrowRight"], ["−", "Smaller", "-"], ["+", "Larger", "+"]];
  for (const [text, label, key] of names) {
    const button = make("button", { type: "button", textContent: text, onclick: actions[key] });
    button.setAttribute("aria-label", label);
    buttons.append(button);
  }
  buttons.append(make("button", { type: "button", textContent: "Close", onclick: () => dialog.close() }));
  dialog.addEventListener("keydown", (event) => {
    if (!(event.key in actions) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => list[place].closest("button").focus());
  document.body.append(dialog);
  return (images, first, say) => {
    [list, describe, side] = [images, say, SIDE];
    show(first);
    dialog.showModal();
  };
})();

function fact(name, value) {
  return make("p", {}, make("strong", { textContent: name }), ` ${value}`);
}

// Images become buttons. Of those beside each other one is reached by Tab, the others by arrows.
function makeGallery(box, images, shown, say) {
  const buttons = images.map((image) => {
    const button = make("button", { type: "button", className: "zoom", tabIndex: -1 });
    image.replaceWith(button);
    button.append(image);
    button.addEventListener("click", () => lightbox(shown(), shown().indexOf(image), say));
    return button;
  });
  if (!buttons.length) return () => {};
  let current = buttons[0];
  function reach(button) {
    current.tabIndex = -1;
    current = button;
    current.tabIndex = 0;
  }
  box.addEventListener("focusin", (event) => { if (buttons.includes(event.target)) reach(event.target); });
  box.addEventListener("keydown", (event) => {
    const here = shown().map((image) => image.parentElement);
    const place = here.indexOf(event.target);
    if (place < 0) return;
    const top = (button) => button.getBoundingClientRect().top;
    const across = here.filter((button) => top(button) === top(event.target)).length;
    const moves = { ArrowLeft: place - 1, ArrowRight: place + 1, ArrowUp: place - across, ArrowDown: place + across, Home: 0, End: here.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    (here[moves[event.key]] || event.target).focus();
  });
  reach(current);
  return () => { if (shown().length) reach(shown()[0].parentElement); };
}

document.querySelectorAll(".gallery, .strips").forEach((gallery) => {
  const images = Array.from(gallery.querySelectorAll("img"));
  const name = (image) => (gallery.className === "strips" ? image.alt : image.closest("div").firstElementChild.textContent);
  makeGallery(gallery, images, () => images, (image) => [make("p", { className: "lightbox-label", textContent: name(image) })]);
});

// One filter for the table of true classes and answers, for the images, and for the same images as a table.

function makeExplorer(box) {
  const filter = box.querySelector(".filter");
  if (!filter) return;
  const list = box.querySelector(".tiles"), status = filter.querySelector("[role=status]");
  const [order, selects] = [filter.querySelector("[data-order]"), Array.from(filter.querySelectorAll("[data-facet]"))];
  const first = selects.map((select) => select.value);
  // Many groups are typed: what is chosen is the place of the word among the suggestions, −1 of one that is none of them.
  const places = (field) => Array.from(field.list.options, (option) => option.value);
  const chosenIn = (field) => (field.list && field.value.trim() ? String(places(field).indexOf(field.value.trim())) : field.value.trim());
  const answers = box.dataset.answers.split(" ").map(Number);
  const rows = new Map(Array.from(box.querySelectorAll(".same-images tbody tr"), (row) => [row.cells[0].textContent.trim(), row]));
  const tiles = Array.from(list.children, (element, place) => ({
    element, place, image: element.querySelector("img"), row: Number(element.dataset.row),
    values: element.dataset.f.split(" ").map(Number), sure: element.dataset.c.split(" ").map(Number),
  }));
  const tileOf = new Map(tiles.map((tile) => [tile.image, tile]));
  const orders = {
    "": (a, b) => a.place - b.place, sure: (a, b) => b.sure[0] - a.sure[0], unsure: (a, b) => a.sure[0] - b.sure[0], row: (a, b) => a.row - b.row,
  };
  const shown = () => Array.from(list.children).filter((element) => !element.hidden).map((element) => element.querySelector("img"));

  function say(image) {
    const tile = tileOf.get(image);
    const facts = Array.from(filter.querySelectorAll("[data-facet]"), (select) => {
      const facet = Number(select.dataset.facet);
      const sure = answers.includes(facet) ? ` (${tile.sure[answers.indexOf(facet)].toFixed(3)})` : "";
      const value = select.list ? places(select)[tile.values[facet]] : select.options[tile.values[facet] + 1].text;
      const name = fact(select.parentElement.firstChild.textContent.trim(), value + sure);
      if (answers.includes(facet)) name.className = "lightbox-answer";
      return name;
    });
    return [make("p", { className: "lightbox-label", textContent: image.alt }), make("div", { className: "lightbox-facets" }, ...facts)];
  }
  const restart = makeGallery(list, tiles.map((tile) => tile.image), shown, say);

  const passes = (tile, but = []) => selects.every((select) => {
    const [facet, chosen] = [Number(select.dataset.facet), chosenIn(select)];
    return chosen === "" || but.includes(facet) || tile.values[facet] === Number(chosen);
  });
  const cells = Array.from(box.querySelectorAll("[data-set]"), (cell) => {
    const [facets, values] = [cell.dataset.facets, cell.dataset.set].map((text) => text.split(" ").map(Number));
    const button = make("button", { type: "button" }, ...cell.childNodes);
    const line = cell.parentElement, table = line.closest("table"), head = table.tHead.rows[0].cells[cell.cellIndex];
    const names = [`${table.dataset.rows} ${line.cells[0].textContent.trim()}`, `${table.dataset.columns} ${head.textContent.trim()}`];
    button.setAttribute("aria-label", `${names.join(", ")}: ${button.textContent}`);
    cell.append(button);
    button.addEventListener("click", () => {
      const again = button.getAttribute("aria-pressed") === "true";
      facets.forEach((facet, place) => choose(facet, again ? "" : String(values[place])));
      update();
    });
    return { cell, button, facets, values, isRight: line.sectionRowIndex + 1 === cell.cellIndex };
  });

  function choose(facet, value) {
    selects.filter((select) => Number(select.dataset.facet) === facet).forEach((select) => { select.value = value; });
  }
  function recount() {
    const counts = new Map();
    const [{ facets } = { facets: [] }] = cells;
    for (const tile of tiles.filter((each) => passes(each, facets))) {
      const key = facets.map((facet) => tile.values[facet]).join(" ");
      counts.set(key, (counts.get(key) || 0) + 1);
    }
    const sums = new Map();
    const ofCell = ({ values }) => counts.get(values.join(" ")) || 0;
    cells.forEach((each) => sums.set(each.values[0], (sums.get(each.values[0]) || 0) + ofCell(each)));
    for (const each of cells) {
      each.button.textContent = ofCell(each);
      each.button.disabled = ofCell(each) === 0;
      each.cell.classList.toggle("right", each.isRight && ofCell(each) > 0);
      each.button.setAttribute("aria-label", each.button.getAttribute("aria-label").replace(/\d+$/, ofCell(each)));
      each.cell.style.setProperty("--share", ofCell(each) / Math.max(1, sums.get(each.values[0])));
    }
  }
  function update() {
    for (const tile of tiles) {
      tile.element.hidden = !passes(tile);
      const row = rows.get(String(tile.row));
      if (row) row.hidden = tile.element.hidden;
    }
    const chosen = (facet) => selects.find((select) => Number(select.dataset.facet) === facet)?.value;
    for (const { button, facets, values } of cells) {
      button.setAttribute("aria-pressed", facets.every((facet, place) => (chosen(facet) ?? String(values[place])) === String(values[place])));
    }
    if ("whole" in box.dataset) recount();
    status.textContent = `${shown().length} of ${tiles.length} images`;
    list.scrollTop = 0;
    restart();
  }
  selects.forEach((select) => select.addEventListener("change", update));
  order.addEventListener("change", () => {
    list.append(...tiles.slice().sort(orders[order.value]).map((tile) => tile.element));
    update();
  });
  filter.querySelector("button").addEventListener("click", () => {
    selects.forEach((select, place) => { select.value = first[place]; });
    update();
  });
  filter.hidden = false;
  list.removeAttribute("tabindex"); // its images take the focus
  update();
}

document.querySelectorAll(".explorer").forEach(makeExplorer);

// Folds

function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let element = target; element; element = element.parentElement) if (element.tagName === "DETAILS") element.open = true;
  if (target) target.scrollIntoView();
}

document.addEventListener("click", (event) => { if (event.target.closest("a[href^='#']")) setTimeout(reveal); });
window.addEventListener("hashchange", reveal);
reveal();

let folded = [];
window.addEventListener("beforeprint", () => {
  folded = Array.from(document.querySelectorAll("details:not([open])"));
  folded.forEach((element) => { element.open = true; });
});
window.addEventListener("afterprint", () => { folded.forEach((element) => { element.open = false; }); });
