# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
# A file of exact versions; only CI gives one, so that users of other systems get what fits theirs.
CONSTRAINTS ?=
BIN := $(VENV)/bin
INSTALLER ?= $(BIN)/python -m pip install --quiet
# Compiled modules and rewritten assertions are kept: workers and child processes read them instead of making them again.
unexport PYTHONDONTWRITEBYTECODE
SOURCES := src tests benchmarks recipes studies examples docs/generate.py docs/terminal_picture.py

# Two processes share the files of fast tests and, one by one, the slow tests; tests/conftest.py says which go together.
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist loadgroup --no-loadscope-reorder

.PHONY: demo test check fast lint format docs bench lock clean help

help:
	@echo "make demo    environment, install, then: crossgraft demo"
	@echo "make test    every test (browser tests need Debian's chromium)"
	@echo "make check   format, lint, types, import contract, fast tests"
	@echo "make lint    the same without tests"
	@echo "make fast    those tests alone"
	@echo "make docs    write the generated catalogues again"
	@echo "make bench   benchmarks as ratios to floors measured in the same run"
	@echo "make lock    write the versions that are installed to requirements-ci.lock"

$(VENV)/installed: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(INSTALLER) --upgrade "pip>=25.1"
	$(INSTALLER) $(addprefix --constraint ,$(CONSTRAINTS)) --editable . --group dev
	@touch $@

demo: $(VENV)/installed
	$(BIN)/crossgraft demo

# Two default threads of each process on a loaded two-core machine slow each other down by orders of magnitude.
# Where a test asks for threads, those that wait leave the core, as in the program.
test fast: export OMP_NUM_THREADS ?= 1
test fast: export OMP_WAIT_POLICY ?= passive

test: $(VENV)/installed
	$(PYTEST) $(if $(ONLY),-m "$(ONLY)")

check: lint fast

# Where every test is asked for as well, as CI does, it is run once: `make --jobs=2 check test`.
ifneq ($(filter test,$(MAKECMDGOALS)),)
fast: test
else
fast: $(VENV)/installed
	$(PYTEST) -m "not slow and not browser and not real_data"
endif

lint: $(VENV)/installed
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(VENV)/installed
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

docs: $(VENV)/installed
	$(BIN)/python docs/generate.py

bench: $(VENV)/installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/scores.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/extraction.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/check.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/decoding.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/estimates.py
	$(BIN)/python benchmarks/start_up.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/whole_commands.py

# Without torch: its build depends on the machine (CPU, or a version of CUDA) and brings its own companions.
lock: $(VENV)/installed
	echo "# Written by 'make lock' with $$($(BIN)/python --version): what CI installs. Lines that a machine does not need do nothing." > lock.new
	$(BIN)/python -m pip freeze --all --exclude-editable --exclude pip | grep -vE '^(torch|torchvision|triton|nvidia-.*|cuda-.*)==' >> lock.new
	mv lock.new requirements-ci.lock

clean:
	rm -rf $(VENV) build dist src/*.egg-info
