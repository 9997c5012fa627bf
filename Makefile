# Everything a developer or a visitor runs. Each target starts from a machine with nothing but cargo and Python 3.

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))

.PHONY: help setup build demo test test-matrix wheel bless lint bench

help:
	@echo 'make setup       install what is missing (as root), make the Python environments'
	@echo 'make demo        split an export for three platforms, run the cpu one in JAX beside the original'
	@echo 'make test        all tests: Rust, then the acceptance tests in the two newest JAX versions that run here'
	@echo 'make test-matrix the acceptance tests in every JAX version that runs here'
	@echo 'make wheel       the Python package as a wheel, in target/wheels'
	@echo 'make bless       rewrite the golden files; read the diff afterwards'
	@echo 'make lint        format, clippy, rustdoc, and what else is installed'
	@echo 'make bench       time and memory beside a Python script that does the same'

build:
	@scripts/setup
	cargo build --release

setup:
	@scripts/setup
	@scripts/python-env --newest 2

demo: build
	@scripts/demo '$(TARGET)/release/jaxprism'

# The development profile: quicker to build than release, and it checks arithmetic.
test:
	@scripts/setup
	cargo build
	@python=$$(scripts/python-env | cut -d' ' -f2) && "$$python" scripts/extract-backcompat '$(TARGET)/backcompat'
	JAXPRISM_JAX_BACKCOMPAT='$(TARGET)/backcompat' cargo test
	@scripts/acceptance --newest 2

test-matrix:
	@scripts/setup
	cargo build
	@scripts/acceptance --all

wheel:
	@scripts/setup
	@scripts/wheel release

bless:
	@scripts/setup
	BLESS=1 cargo test --test cli --test golden
	@git status --short testdata/golden

lint:
	@scripts/setup
	@scripts/lint

bench: build
	@scripts/bench '$(TARGET)/release/jaxprism'
