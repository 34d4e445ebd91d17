"use strict";
// The page is complete without this script; it only makes tables sortable, shows that a table was scrolled past the names of its
// rows, and unfolds everything for print.

const MISSING = "—";

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
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const order = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", order);
      sortRows(table, column, order === "ascending" ? 1 : -1);
    });
  });
}

document.querySelectorAll("table").forEach(makeSortable);

document.querySelectorAll(".table").forEach((region) => {
  region.addEventListener("scroll", () => region.classList.toggle("scrolled", region.scrollLeft > 0), { passive: true });
});

window.addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((element) => { element.open = true; });
});
