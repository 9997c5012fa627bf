"""Ordered effects: a token of `main` goes with the last callback of its effect, and with no other."""

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxprism
import pytest
from callback_case import Exported, functions_of, graph_of, levels, load, module_of
from callback_programs import ROW, note, see
from callback_reference import attributes_of
from graph import compare
from jax import export, lax
from jax._src import callback, core, debugging, effects
from jax._src.interpreters import mlir
from jax.experimental import io_callback
from jaxlib.mlir import ir
from test_split import rewritten
from tool import Tool

PLATFORMS = ("cpu", "cuda", "tpu")
IO, DEBUG = "OrderedIOEffect", "OrderedDebugEffect"


# ---------------------------------------------------------------- an ordered effect that is none of JAX's


def slot(effect: effects.Effect) -> int:
    """Where a small set of Python keeps it: JAX orders tokens as the sets of their effects are."""
    return hash(effect) % 8


OWN_SLOTS = {slot(effect) for effect in (callback._OrderedIOEffect, debugging.ordered_debug_effect)}
# What shares its slot with another stands elsewhere when that one is gone.
IN_ORDER = len(OWN_SLOTS) == 2
FREE_SLOT = min(set(range(8)) - OWN_SLOTS)


class Chain(effects.Effect):
    """Equal to any other, so that JAX writes it."""

    def __eq__(self, other):
        return isinstance(other, Chain)

    def __hash__(self):
        return FREE_SLOT


for known in (effects.ordered_effects, effects.lowerable_effects, effects.control_flow_allowed_effects):
    known.add_type(Chain)

chain_p = core.Primitive("chain")
chain_p.multiple_results = True
chain_p.def_effectful_abstract_eval(lambda x: ([core.ShapedArray(x.shape, x.dtype)], {Chain()}))


def lower_chain(ctx, x):
    """A custom call that takes the token of its effect and returns it."""
    token = ctx.tokens_in.get(Chain())
    call = mlir.custom_call("test_chain", result_types=[token.type, x.type], operands=[token, x], has_side_effect=True)
    ctx.set_tokens_out(ctx.tokens_in.update_tokens(mlir.TokenSet({Chain(): call.results[0]})))
    return [call.results[1]]


mlir.register_lowering(chain_p, lower_chain)


def chain(x):
    """An operation in order, and no callback."""
    return chain_p.bind(x)[0]


# ---------------------------------------------------------------- programs


def debug(x):
    jax.debug.callback(see, x, ordered=True)
    return x


def io(x):
    io_callback(note, None, x, ordered=True)
    return x


STEPS: dict[str, Callable] = {IO: io, DEBUG: debug, "Chain": chain}
STRIPPED = {IO: "note", DEBUG: "see"}


def straight(kinds: tuple, silent: tuple = ()) -> Callable:
    """The operations twice, one after the other; those that are silent were never written."""

    def run(x):
        for kind in kinds * 2:
            x = jnp.sin(x if kind in silent else STEPS[kind](x))
        return x

    return run


def looped(kinds: tuple, silent: tuple = ()) -> Callable:
    """All of them in a loop, in a branch, in a function that is called twice."""

    @jax.jit
    def inner(x):
        def step(c, _):
            return straight(kinds, silent)(c), None

        return lax.cond(x[0] > 0, lambda x: lax.scan(step, x, None, length=3)[0], lambda x: x - 1, x)

    return lambda x: inner(inner(x) * 2)


def exported(function: Callable, platforms: tuple[str, ...] = PLATFORMS) -> bytes:
    """With placeholders."""
    checks = [export.DisabledSafetyCheck.custom_call("test_chain")]

    def run(x):
        return function(x)

    return jaxprism.serialize(jaxprism.export(jax.jit(run), platforms=platforms, disabled_checks=checks)(ROW))


def names(found: Exported) -> list[str]:
    """The ordered effects by their classes."""
    return [type(effect).__name__ for effect in found.ordered_effects]


# ---------------------------------------------------------------- tests


SUBSETS = [kinds for count in range(4) for kinds in itertools.combinations(STEPS, count)]
CASES = [
    (shape, kinds, gone)
    for shape in (straight, looped)
    for kinds in SUBSETS
    for gone in itertools.chain(*(itertools.combinations(STRIPPED, count) for count in range(3)))
    if set(gone) <= set(kinds)
]


def label(value) -> str:
    return value.__name__ if callable(value) else "+".join(kind.removesuffix("Effect") for kind in value) or "none"


@pytest.mark.parametrize(("shape", "kinds", "gone"), CASES, ids=label)
def test_tokens_go_with_their_effects(tool: Tool, tmp_path: Path, shape: Callable, kinds: tuple, gone: tuple):
    path = tmp_path / "model.jax_exported"
    path.write_bytes(exported(shape(kinds)))
    before = load(path.read_bytes())
    assert sorted(names(before)) == sorted(kinds)
    rules = [word for kind in gone for word in ("--callback", f"{STRIPPED[kind]}=strip")]
    outcome = tool.run("split", path, "-o", f"{tmp_path}/out/", "--callbacks", "keep", *rules)
    assert outcome.returncode == 0, outcome.stderr.decode()
    left = [name for name in names(before) if name not in gone]
    for platform in PLATFORMS:
        (found,) = levels(load((tmp_path / "out" / f"model.{platform}.jax_exported").read_bytes()))
        assert names(found) == left
        assert first_users(found, left) == left
        never = load(exported(shape(kinds, gone), (platform,)))
        assert sorted(names(never)) == sorted(left)
        if names(never) == left and (IN_ORDER or len(left) < 2):
            assert functions_of(found) == functions_of(never)
            difference = compare(graph_of(found), graph_of(never))
            assert difference is None, f"{platform}: left is the split, right the program without\n{difference}"
        artifact = bytes(found.mlir_module_serialized)
        assert rewritten(artifact) == artifact
        if platform == "cpu":
            assert_called(found, left)


def first_users(found: Exported, effects_left: list[str]) -> list[str]:
    """For each token of `main`, the effect of the first operation that it gets to."""
    with module_of(found) as module:
        tops = [top for top in module.body.operations if "sym_name" in attributes_of(top.operation)]
        functions = {ir.StringAttr(top.attributes["sym_name"]).value: top for top in tops}
        arguments = functions["main"].regions[0].blocks[0].arguments
        tokens = [argument for argument in arguments if "token" in str(argument.type)]
        assert len(tokens) == len(effects_left)
        return [effect_behind(token, functions) for token in tokens]


def effect_behind(token: ir.Value, functions: dict) -> str:
    """Follows a token into functions, branches and loops."""
    while True:
        # Branches see the token as it is; one may only return it.
        use = next(use for use in token.uses if "return" not in use.owner.name)
        user, number = use.owner, use.operand_number
        if user.name == "func.call":
            callee = functions[ir.FlatSymbolRefAttr(user.attributes["callee"]).value]
            token = callee.regions[0].blocks[0].arguments[number]
        elif user.name == "stablehlo.while":
            token = user.regions[1].blocks[0].arguments[number]
        else:
            assert user.name == "stablehlo.custom_call"
            if ir.StringAttr(user.attributes["call_target_name"]).value == "test_chain":
                return "Chain"
            name = ir.StringAttr(ir.DictAttr(user.attributes["mhlo.backend_config"])["name"]).value
            return {"note": IO, "see": DEBUG}[name]


def assert_called(found: Exported, left: list[str]) -> None:
    """JAX calls it: its types, and its tokens in a program around it."""
    assert jax.eval_shape(found.call, ROW) == jax.eval_shape(jnp.sin, ROW)
    (main,) = re.findall(r"func\.func public @main.*", jax.jit(found.call).lower(ROW).as_text())
    assert main.count("jax.token = true") == 2 * len(left)
    if not left:
        jax.jit(found.call)(jnp.ones(4))
