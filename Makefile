# Needs make and Python 3.11 or later with pip. Everything is installed into .venv and nowhere else.

PYTHON ?= python3

VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
SOURCES := pyproject.toml $(shell find src -name '*.py')

# Tests on real data run where the data is; elsewhere they are deselected. The parallel runner does not count those.
SELECT := $(if $(MAXMARGIN_DATA),,-m "not realdata")
REPORT_DESELECTED = echo "MAXMARGIN_DATA is not set, tests on real data were deselected:" && \
    $(BIN)/pytest --collect-only -q $(SELECT) | tail -n 1

# CPUs that OpenBLAS is told to round like: without AVX-512, and without AVX2 and fused multiply-add.
# Not Haswell: OpenBLAS 0.3.34 (in NumPy 2.5) applies the block sizes of AMD Zen 4 and 5 CPUs also where
# OPENBLAS_CORETYPE forces Haswell's kernels, whose stack buffer is then too small (its issues 6013, 6021, 6026).
# Real Haswell CPUs are not affected. On Zen, imitate Haswell with NumPy 2.4, as on Python 3.11.
CPUS := Nehalem Sandybridge

# What `make check` runs of the tests: the core, without images, clusters, pages and the long runs with exact fractions.
CORE := $(addprefix tests/,kernels data metrics regularizers inference models constraints solvers latent clustering) \
    $(filter-out tests/test_persistence.py,$(wildcard tests/test_*.py))
SLOW := tests/solvers/test_exact_certificates.py tests/data/test_fuzz_shards.py

.PHONY: help demo check test docs-test test-cpus bench docs release clean need-data

help:
	@echo "make demo    train, certify and draw a classifier of digits (terminal and demo.png)"
	@echo "make check   lint, types, import layers and the tests of the core: for every change (two minutes)"
	@echo "make test    make check's checks and all tests but those of the site (on real data too if MAXMARGIN_DATA is set)"
	@echo "make docs-test  tests of the site: its pages, examples, papers and the release"
	@echo "make test-cpus  tests that depend on rounding, as other CPUs would round (CPUS='$(CPUS)')"
	@echo "make bench   time against LIBLINEAR, scikit-learn, dlib, CRFsuite and OpenCV (needs MAXMARGIN_DATA and 10 GB of disk; long)"
	@echo "make docs    the site as HTML in docs/_build/html: guide, gallery (runs all examples), API"
	@echo "make release wheel and sdist into dist, tried in empty environments of every Python on the path"
	@echo "make clean   remove .venv and everything that was built"
	@echo
	@echo "With another interpreter: make demo PYTHON=python3.12"

demo: $(VENV)/.for-demo
	@$(BIN)/python examples/demo.py

define LINT
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
endef

check: $(VENV)/.for-test
	$(LINT)
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not realdata" $(addprefix --ignore=,$(SLOW)) $(CORE)

test: $(VENV)/.for-test
	$(LINT)
	$(BIN)/pytest -n 2 --dist loadfile $(SELECT) --ignore=tests/site
	@$(if $(MAXMARGIN_DATA),,$(REPORT_DESELECTED))

docs-test: $(VENV)/.for-test
	$(BIN)/pytest -n 2 --dist loadfile $(SELECT) tests/site

test-cpus: $(VENV)/.for-test
	@for cpu in $(CPUS); do \
	    echo "As $$cpu would round:"; \
	    OPENBLAS_CORETYPE=$$cpu $(BIN)/pytest -q -n 2 --dist loadfile -m rounding tests || exit 1; \
	done

bench: need-data $(VENV)/.for-bench
	$(BIN)/python benchmarks/linear.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/hard.py
	$(BIN)/python benchmarks/cold_start.py
	$(BIN)/python benchmarks/cores.py
	$(BIN)/python benchmarks/structured.py
	$(BIN)/python benchmarks/graphs.py
	$(BIN)/python benchmarks/parsing.py
	$(BIN)/python benchmarks/segmentation.py
	$(BIN)/python benchmarks/calibration.py
	$(BIN)/python benchmarks/out_of_core.py
	$(BIN)/python benchmarks/latent.py
	$(BIN)/python benchmarks/scenes.py
	$(BIN)/python benchmarks/parts_scale.py --n-jobs 2
	$(BIN)/python benchmarks/detection.py
	$(BIN)/python benchmarks/clusters.py

# Without running the examples of the gallery: make docs SPHINXOPTS='-D plot_gallery=0'
docs: $(VENV)/.for-docs
	$(BIN)/sphinx-build -W --keep-going -q $(SPHINXOPTS) docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html
	@echo "Documentation: docs/_build/html/index.html"

release: $(VENV)/.for-release
	$(BIN)/python release/check.py $(PYTHONS)

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -f *.png examples/*.png
	find src tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} +

need-data:
	@test -n "$(MAXMARGIN_DATA)" || { \
	    echo "The benchmark reads real data sets from the folder named by MAXMARGIN_DATA, which is not set." >&2; \
	    echo "Set it and try again: make bench MAXMARGIN_DATA=path/to/folder" >&2; \
	    echo "(benchmarks/datasets.py says which files it looks for. make demo needs none of them.)" >&2; \
	    exit 1; }

# What each target needs installed. The stamps remember it; a change of the source or of pyproject.toml undoes them.
# Tests want an editable install and the others a real one, so each kind cancels the stamps of the other.

$(VENV)/.for-demo: EXTRA := plots
$(VENV)/.for-bench: EXTRA := bench,vision
$(VENV)/.for-docs: EXTRA := docs
$(VENV)/.for-release: EXTRA := release
AS_USERS := $(addprefix $(VENV)/.for-,demo bench docs release)

$(AS_USERS): $(SOURCES) | $(VENV)/.created
	@echo "Installing maxmargin[$(EXTRA)] into $(VENV) ..."
	@$(INSTALL) '.[$(EXTRA)]'
	@rm -f $(VENV)/.for-test
	@touch $@

$(VENV)/.for-test: pyproject.toml | $(VENV)/.created
	@echo "Installing maxmargin[test] into $(VENV), editable ..."
	@$(INSTALL) -e '.[test]'
	@rm -f $(AS_USERS)
	@touch $@

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("maxmargin needs Python 3.11 or later, and \
	$(PYTHON) is Python " + sys.version.split()[0] + ". Name a newer one, as in: make demo PYTHON=python3.12")'
	@echo "Creating $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@touch $@
