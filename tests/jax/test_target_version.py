"""Modules in older versions of StableHLO, held against what StableHLO itself writes in that version, or refuses."""

import re
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest
from jax import export
from jax._src.export import serialization_generated as flatbuffer
from jax._src.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from programs import PROGRAMS, Unavailable
from tool import ROOT, Tool

if "allow_other_dialects" not in (stablehlo.serialize_portable_artifact.__doc__ or ""):
    pytest.skip("this jaxlib has no choice for artifacts with other dialects", allow_module_level=True)

# The first version with each thing, and the one before; those in which bytecode changed; some with a patch.
VERSIONS = (
    *("0.9.0", "0.10.0", "0.11.0", "0.12.0", "0.13.0", "0.14.0", "0.15.0", "0.16.0", "0.17.0", "0.18.0", "0.19.0"),
    *("0.20.0", "1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.5.0", "1.6.1", "1.7.0", "1.8.7", "1.9.0", "1.10.0"),
    *("1.11.0", "1.12.0", "1.13.7", "1.14.0", "1.15.0", "1.16.0", "1.17.0", "1.18.0", "1.19.0", "1.20.0"),
)
FEW = ("0.9.0", "0.14.0", "1.0.0", "1.8.0", "1.10.0", "1.12.0", "1.13.0")
EXPORTS = sorted((ROOT / "testdata" / "exports").glob("*.jax_exported"))
CURRENT = stablehlo.get_current_version()


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def version_of(module: bytes) -> str:
    return re.match(rb"ML\xefR.StableHLO_v([0-9.]+)\0", module, re.DOTALL)[1].decode()


def modules(data: bytes) -> Iterator[bytes]:
    """The modules of an export, by gradient level."""
    level = flatbuffer.Exported.GetRootAs(bytearray(data), 0)
    while level is not None:
        yield level.MlirModuleSerializedAsNumpy().tobytes()
        level = level.Vjp()


def read(module: bytes) -> ir.Module:
    return stablehlo.deserialize_portable_artifact(ir.Context.current, module)


def written(module: bytes, version: str) -> bytes | None:
    """What StableHLO makes of a module in a version; nothing if it refuses."""
    try:
        # Readers know no other dialects before 1.11, when StableHLO began to write them.
        return bytes(stablehlo.serialize_portable_artifact(read(module), version, numbers(version) >= (1, 11, 0)))
    except (ValueError, ir.MLIRError):
        return None


def hold(original: bytes, found: bytes | None, version: str) -> None:
    """Holds a module in a version against what StableHLO makes of the original."""
    if numbers(version_of(original)) <= numbers(version):
        assert found == original, "readers of the version read it as it is"
        return
    with jax_mlir.make_ir_context():
        expected = written(original, version)
        assert (found is None) == (expected is None), (
            f"StableHLO {'refuses' if expected is None else 'writes'} {version}"
        )
        if expected is None:
            return
        assert version_of(found) == version
        if has_own_orders(original):
            assert str(read(found)) == str(read(expected))
            return
        assert found == written(found, version), "StableHLO would write it otherwise"
        if numbers(version) >= (1, 9, 0):
            assert found == expected
        else:
            # StableHLO leaves ranges in locations, which readers of the version do not know.
            assert str(read(found)) == str(read(expected))


def has_own_orders(module: bytes) -> bool:
    """Whether this jaxlib stores uses otherwise: newer forms of operations that it does not know decide it.

    What an older one wrote may also be stored in a way that no jaxlib writes any more.
    """
    has_newer_forms = numbers(CURRENT) < (1, 18, 0) and b"custom_call_v" in module
    return has_newer_forms or module != written(module, version_of(module))


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: path.name.removesuffix(".jax_exported"))
def test_exports_become_what_stablehlo_writes(path: Path, tool: Tool):
    stubbed = ("--callback", "*=stub:zeros")
    done = tool.run("strip", path, "-o", "-", *stubbed)
    if done.returncode != 0:
        done, stubbed = tool.run("strip", path, "-o", "-"), ()
    assert done.returncode == 0, done.stderr.decode()
    originals = list(modules(done.stdout))
    if any(numbers(version_of(module)) > numbers(CURRENT) for module in originals):
        pytest.skip("the export is newer than this jaxlib")
    for version in VERSIONS:
        if numbers(version) > numbers(CURRENT):
            continue
        done = tool.run("strip", path, "-o", "-", *stubbed, "--target-version", version)
        if done.returncode == 0:
            for original, found in zip(originals, modules(done.stdout), strict=True):
                hold(original, found, version)
        else:
            assert f"cannot be written as StableHLO {version}" in done.stderr.decode()
            with jax_mlir.make_ir_context():
                assert None in [written(original, version) for original in originals]


@pytest.mark.parametrize("name", PROGRAMS)
def test_splits_become_what_stablehlo_writes(name: str, tool: Tool):
    program = PROGRAMS[name]
    try:
        with program.context():
            data = bytes(program.export(program.platforms).serialize(program.vjp_order))
    except Unavailable as reason:
        pytest.skip(str(reason))
    except ValueError as error:
        if "but decomposition has" in str(error):
            pytest.skip(f"JAX {jax.__version__} cannot export a composite for several platforms")
        raise
    platform = program.platforms[0]
    done = tool.run("split", "-", "-p", platform, "-o", "-", stdin=data)
    assert done.returncode == 0, done.stderr.decode()
    originals = list(modules(done.stdout))
    for version in FEW:
        done = tool.run("split", "-", "-p", platform, "-o", "-", "--target-version", version, stdin=data)
        if done.returncode != 0:
            with jax_mlir.make_ir_context():
                assert None in [written(original, version) for original in originals]
            continue
        for original, found in zip(originals, modules(done.stdout), strict=True):
            hold(original, found, version)


def test_jax_computes_the_same_bits(tool: Tool):
    def model(x):
        return jax.numpy.tanh(x) @ jax.numpy.exp(x.T), x[jax.numpy.array([2, 0])], x.at[1].set(2.0)

    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    data = export.export(jax.jit(model), platforms=("cpu", "cuda"))(x).serialize(1)
    expected = export.deserialize(data)
    for version in ("0.19.0", "1.0.0", "1.8.0", "1.12.0"):
        done = tool.run("split", "-", "-p", "cpu", "-o", "-", "--target-version", version, stdin=bytes(data))
        assert done.returncode == 0, done.stderr.decode()
        found = export.deserialize(bytearray(done.stdout))
        for level in (found, found.vjp()):
            assert version_of(level.mlir_module_serialized) == version
        assert found.calling_convention_version == expected.calling_convention_version
        for one, other in zip(found.call(x), expected.call(x), strict=True):
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
        jax.grad(lambda x, f=found.call: f(x)[0].sum())(x)


# ---------------------------------------------------------------- every operation that changed

T = "tensor<4xf32>"
GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
SUM = (
    "({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %s = stablehlo.add %a, %b : tensor<f32> "
    "stablehlo.return %s : tensor<f32> })"
)
ACCURATE = [
    "cbrt",
    "cosine",
    "exponential",
    "exponential_minus_one",
    "log",
    "log_plus_one",
    "logistic",
    "rsqrt",
    "sine",
    "sqrt",
    "tan",
    "tanh",
]
HIGHEST = "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>"
CONV = (
    "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, "
    "batch_group_count = 1 : i64"
)


def one(work: str, takes: str = f"%x: {T}", gives: str = T) -> str:
    return f"func.func public @main({takes}) -> ({gives}) {{\n{work}\nreturn %r : {gives}\n}}"


def gather(extra: str, indices: str, gives: str, sizes: str) -> str:
    x, attributes = "tensor<3x4xf32>", f"dimension_numbers = #stablehlo.gather<{extra}>, indices_are_sorted = false"
    if not sizes:
        work = (
            f'%r = "stablehlo.dynamic_gather"(%x, %i, %n) {{{attributes}}} : ({x}, {indices}, tensor<2xi64>) -> {gives}'
        )
        return one(work, f"%x: {x}, %i: {indices}, %n: tensor<2xi64>", gives)
    attributes += f", slice_sizes = array<i64: {sizes}>"
    return one(
        f'%r = "stablehlo.gather"(%x, %i) {{{attributes}}} : ({x}, {indices}) -> {gives}',
        f"%x: {x}, %i: {indices}",
        gives,
    )


PLAIN_GATHER = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
BATCHED_GATHER = (
    "offset_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], "
    "start_index_map = [1], index_vector_dim = 1"
)


def scatter(numbers: str, indices: str, updates: str) -> str:
    types = f"(tensor<3x4xf32>, {indices}, {updates}) -> tensor<3x4xf32>"
    return one(
        f'%r = "stablehlo.scatter"(%x, %i, %u) {SUM} {{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, '
        f"indices_are_sorted = false, unique_indices = false}} : {types}",
        f"%x: tensor<3x4xf32>, %i: {indices}, %u: {updates}",
        "tensor<3x4xf32>",
    )


def collective(name: str, attributes: str, region: str = "", takes: int = 1, gives: str = T) -> str:
    operands = ", ".join(f"%x{k}" for k in range(takes))
    results = "%r" if takes == 1 else f"%r:{takes}"
    work = (
        f'{results} = "stablehlo.{name}"({operands}) {region} {{{attributes}}} : ({", ".join([T] * takes)}) -> '
        f"({', '.join([gives] * takes)})"
    )
    arguments = ", ".join(f"%x{k}: {T}" for k in range(takes))
    result = "%r" if takes == 1 else "%r#0"
    return f"func.func public @main({arguments}) -> {gives} {{\n{work}\nreturn {result} : {gives}\n}}"


def custom_call(attributes: str) -> str:
    return one(f"%r = stablehlo.custom_call @f(%x) {{{attributes}}} : ({T}) -> {T}")


def dot(algorithm: str = "") -> str:
    m = "tensor<4x4xf32>"
    return one(
        f"%r = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]{algorithm} : ({m}, {m}) -> {m}", f"%x: {m}", m
    )


def typed(element: str, work: str = "%r = stablehlo.negate %x") -> str:
    of = f"tensor<2x{element}>"
    return one(f"{work} : {of}", f"%x: {of}", of)


OPERATIONS = {
    **{name: one(f"%r = stablehlo.{name} %x : {T}") for name in ACCURATE},
    **{
        f"{name} accurate": one(f'%r = "stablehlo.{name}"(%x) {{result_accuracy = {HIGHEST}}} : ({T}) -> {T}')
        for name in ACCURATE
    },
    "all_gather": collective("all_gather", f"all_gather_dim = 0 : i64, {GROUPS}, {CHANNEL}", gives="tensor<8xf32>"),
    "all_gather of two": collective(
        "all_gather", f"all_gather_dim = 0 : i64, {GROUPS}", takes=2, gives="tensor<8xf32>"
    ),
    "all_reduce": collective("all_reduce", f"{GROUPS}, {CHANNEL}", SUM),
    "all_reduce of two": collective("all_reduce", GROUPS, SUM, takes=2),
    "all_to_all": collective(
        "all_to_all", f"split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, {GROUPS}"
    ),
    "all_to_all of two": collective(
        "all_to_all", f"split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, {GROUPS}", takes=2
    ),
    "collective_broadcast": collective("collective_broadcast", GROUPS),
    "collective_permute": collective("collective_permute", "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>"),
    "reduce_scatter": collective(
        "reduce_scatter", f"scatter_dimension = 0 : i64, {GROUPS}", SUM, gives="tensor<2xf32>"
    ),
    "dot": one(
        "%r = stablehlo.dot %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>",
        "%x: tensor<2x2xf32>",
        "tensor<2x2xf32>",
    ),
    "dot precise": one(
        "%r = stablehlo.dot %x, %x, precision = [HIGHEST, DEFAULT] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>",
        "%x: tensor<2x2xf32>",
        "tensor<2x2xf32>",
    ),
    "composite": one(f'%r = stablehlo.composite "a.b" %x {{decomposition = @f}} : ({T}) -> {T}')
    + f"\nfunc.func private @f(%x: {T}) -> {T} {{ return %x : {T} }}",
    "custom_call": custom_call("api_version = 2 : i32"),
    "custom_call with a dictionary": custom_call("api_version = 4 : i32, backend_config = {a = 1 : i32}"),
    "custom_call of an ffi": custom_call("api_version = 4 : i32, backend_config = {}"),
    "dot_general": dot(),
    "dot_general with an algorithm": dot(
        ", algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, "
        "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, "
        "allow_imprecise_accumulation = false>"
    ),
    "dynamic_conv": one(
        f'%r = "stablehlo.dynamic_conv"(%x, %k, %p) {{{CONV}}} : '
        "(tensor<1x4x4x1xf32>, tensor<2x2x1x1xf32>, tensor<2x2xi64>) -> tensor<1x?x?x1xf32>",
        "%x: tensor<1x4x4x1xf32>, %k: tensor<2x2x1x1xf32>, %p: tensor<2x2xi64>",
        "tensor<1x?x?x1xf32>",
    ),
    "gather": gather(PLAIN_GATHER, "tensor<2x1xi32>", "tensor<2x4xf32>", "1, 4"),
    "gather in batches": gather(BATCHED_GATHER, "tensor<3x1xi32>", "tensor<3x2xf32>", "1, 2"),
    "dynamic_gather": gather(PLAIN_GATHER, "tensor<2x1xi32>", "tensor<2x4xf32>", ""),
    "dynamic_gather in batches": gather(BATCHED_GATHER, "tensor<3x1xi32>", "tensor<3x2xf32>", ""),
    "scatter": scatter(
        "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
        "index_vector_dim = 1",
        "tensor<2x1xi32>",
        "tensor<2x4xf32>",
    ),
    "scatter in batches": scatter(
        "update_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], "
        "scatter_dims_to_operand_dims = [1], index_vector_dim = 1",
        "tensor<3x1xi32>",
        "tensor<3x2xf32>",
    ),
    "send": one(
        f'%r = "stablehlo.send"(%x, %t) {{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, '
        f"is_host_transfer = true}} : ({T}, !stablehlo.token) -> !stablehlo.token",
        f"%x: {T}, %t: !stablehlo.token",
        "!stablehlo.token",
    ),
    "recv": f'func.func public @main(%t: !stablehlo.token) -> {T} {{\n%r:2 = "stablehlo.recv"(%t) {{channel_handle = '
    f"#stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}} : "
    f"(!stablehlo.token) -> ({T}, !stablehlo.token)\n"
    f"return %r#0 : {T}\n}}",
    "reduce that promotes": one(
        '%z = stablehlo.constant dense<0.0> : tensor<f32>\n%r = "stablehlo.reduce"(%x, %z) '
        "({ ^bb0(%a: tensor<f64>, %b: tensor<f64>): "
        "%s = stablehlo.add %a, %b : tensor<f64> stablehlo.return %s : tensor<f64> }) {dimensions = array<i64: 0>} : "
        f"({T}, tensor<f32>) -> tensor<f64>",
        gives="tensor<f64>",
    ),
    **{
        f"type {element}": typed(element)
        for element in [
            "f8E4M3FN",
            "f8E5M2",
            "f8E4M3FNUZ",
            "f8E5M2FNUZ",
            "f8E4M3B11FNUZ",
            "f8E4M3",
            "f8E3M4",
            "f4E2M1FN",
            "f6E2M3FN",
            "f6E3M2FN",
        ]
    },
    "type f8E8M0FNU": typed("f8E8M0FNU", "%r = stablehlo.optimization_barrier %x"),
    "type i2": typed("i2"),
    "type ui2": typed("ui2", "%r = stablehlo.not %x"),
    "type i4": typed("i4"),
    "type quantized": typed("!quant.uniform<i8:f32, 0.5>", "%r = stablehlo.optimization_barrier %x"),
    "type quantized per axis": one(
        "%r = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>",
        "%x: tensor<2xf32>",
        "tensor<2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>",
    ),
    "bounds": one(
        "%r = stablehlo.optimization_barrier %x : tensor<?xf32, #stablehlo.bounds<4>>",
        "%x: tensor<?xf32, #stablehlo.bounds<4>>",
        "tensor<?xf32, #stablehlo.bounds<4>>",
    ),
    "a value in many uses": f"func.func public @main(%x: {T}) -> ({T}, {T}, {T}) {{\n"
    + "".join(
        f"%{k} = stablehlo.{'tanh' if k in (3, 4, 9) else 'add'} {'%x' if k in (3, 4, 9) else '%x, %x'} : {T}\n"
        for k in range(12)
    )
    + f"%a = stablehlo.add %3, %4 : {T}\n%b = stablehlo.exponential %3 : {T}\n%c = stablehlo.add %3, %3 : {T}\n"
    + f"return %a, %b, %c : {T}, {T}, {T}\n}}",
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_become_what_stablehlo_writes(name: str, tool: Tool, tmp_path: Path):
    with jax_mlir.make_ir_context():
        try:
            module = ir.Module.parse(OPERATIONS[name])
        except ir.MLIRError as error:
            if "unregistered dialect" in str(error):
                pytest.skip(f"the context of JAX {jax.__version__} does not know the type")
            raise
        original = bytes(stablehlo.serialize_portable_artifact(module, CURRENT, True))
        path = tmp_path / "module.mlirbc"
        path.write_bytes(original)
    came, outcomes = None, []
    for version in VERSIONS:
        if numbers(version) >= numbers(CURRENT):
            continue
        done = tool.run("opt", path, "--target-version", version, "--emit", "mlirbc", "-o", "-")
        hold(original, done.stdout if done.returncode == 0 else None, version)
        outcomes.append(done.returncode == 0)
        if done.returncode != 0:
            came = re.search(
                r"hint: ([0-9.]+) is the oldest version that has all of this module", done.stderr.decode()
            )[1]
    assert outcomes == sorted(outcomes), "what a version has, newer ones have"
    if came is not None:
        done = tool.run("opt", path, "--target-version", came, "--emit", "mlirbc", "-o", "-")
        assert done.returncode == 0, "the version that is named has it"
