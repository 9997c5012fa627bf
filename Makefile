# Everything a developer or a visitor runs. Each target starts from a machine with nothing but cargo and Python 3.

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))

.PHONY: help setup build demo test test-matrix test-beam wheel bless lint bench mutate asan

help:
	@echo 'make setup       install what is missing (as root), make the Python environments'
	@echo 'make demo        split an export for three platforms, run the cpu one in JAX beside the original'
	@echo 'make test        all tests: Rust, then the acceptance tests in the two newest JAX versions that run here'
	@echo 'make test-matrix the acceptance tests in every JAX version that runs here'
	@echo 'make test-beam   the recipe for thousands of files, on Apache Beam'
	@echo 'make wheel       the Python package as a wheel, in target/wheels'
	@echo 'make bless       rewrite the golden files; read the diff afterwards'
	@echo 'make lint        format, clippy, rustdoc, and what else is installed'
	@echo 'make bench       time and memory beside a Python script that does the same'
	@echo 'make mutate      200,000 damaged inputs (or COUNT) through every verb; what JAX says of those that were accepted'
	@echo 'make asan        the tests of the codec and of the way into MLIR and back, under AddressSanitizer'

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

test-beam:
	@scripts/setup
	cargo build
	@scripts/beam

wheel:
	@scripts/setup
	@scripts/wheel release

bless:
	@scripts/setup
	BLESS=1 cargo test --test cli --test golden --test picture
	@git status --short testdata/golden

lint:
	@scripts/setup
	@scripts/lint

bench: build
	@scripts/bench '$(TARGET)/release/jaxprism'

COUNT ?= 200000

mutate:
	@scripts/setup
	cargo build --profile checked --example mutate
	'$(TARGET)/checked/examples/mutate' $(COUNT) --keep '$(TARGET)/mutate/failed' --accepted '$(TARGET)/mutate/accepted'
	@python=$$(scripts/python-env | cut -d' ' -f2) && JAX_PLATFORMS=cpu "$$python" tests/jax/load_accepted.py '$(TARGET)/mutate/accepted' || \
		echo 'JAX does not load all of them; CONTRIBUTING.md says which kinds are known'

# In a folder of its own: everything is built anew. MLIR itself is not instrumented, and leaks are its own. Tests that limit memory are left out: the sanitizer
# needs terabytes of address space.
asan:
	@scripts/setup
	ASAN_OPTIONS=detect_leaks=0 RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR='$(TARGET)/asan' \
		cargo test --target x86_64-unknown-linux-gnu --lib --test roundtrip --test malformed --test text --test split --test fuzz -- \
		--skip hostile_files_are_refused_with_the_place_soon_and_in_little_memory --skip small_programs_stay_small
