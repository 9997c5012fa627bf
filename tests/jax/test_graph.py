"""The comparison of graphs is a judge, so it is shown that it condemns what is wrong and acquits what only looks so."""

import re

import pytest
from graph import Graph, compare
from jax._src.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir

BASE = """
module @jit_f attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  sdy.mesh @unused = <["z"=4]>
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
      -> (tensor<4xf32> {jax.result_info = "result"}, tensor<f32>) {
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %table = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %0 = call @scale(%arg1, %table) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    stablehlo.custom_call @note(%0) {has_side_effect = true} : (tensor<4xf32>) -> ()
    stablehlo.custom_call @note_again(%arg1) {has_side_effect = true} : (tensor<4xf32>) -> ()
    %1 = "stablehlo.case"(%arg0) ({
      %5 = stablehlo.sine %0 : tensor<4xf32>
      stablehlo.return %5 : tensor<4xf32>
    }, {
      %5 = stablehlo.cosine %0 : tensor<4xf32>
      stablehlo.return %5 : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    %2 = stablehlo.composite "test.c" %1 {decomposition = @decomposed} : (tensor<4xf32>) -> tensor<4xf32>
    %3 = sdy.sharding_constraint %2 <@mesh, [{"y"}]> : tensor<4xf32>
    %4 = stablehlo.reduce(%3 init: %one) applies stablehlo.add across dimensions = [0]
        : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %3, %4 : tensor<4xf32>, tensor<f32>
  }
  func.func private @scale(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.subtract %arg0, %arg1 : tensor<4xf32>
    %1 = stablehlo.reshape %0 : (tensor<4xf32>) -> tensor<2x2xf32>
    %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %3 = stablehlo.reshape %2 : (tensor<2x2xf32>) -> tensor<4xf32>
    return %3 : tensor<4xf32>
  }
  func.func private @decomposed(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
LOOP = """
module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %nine = stablehlo.constant dense<9> : tensor<i32>
    %0:3 = stablehlo.while(%a = %one, %b = %zero, %c = %arg0) : tensor<i32>, tensor<i32>, tensor<4xf32>
    cond {
      %1 = stablehlo.compare LT, %b, %nine : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %b, %one : tensor<i32>
      %2 = "stablehlo.case"(%a) ({
        stablehlo.return %c : tensor<4xf32>
      }, {
        %3 = stablehlo.sine %c : tensor<4xf32>
        stablehlo.return %3 : tensor<4xf32>
      }) : (tensor<i32>) -> tensor<4xf32>
      stablehlo.return %a, %1, %2 : tensor<i32>, tensor<i32>, tensor<4xf32>
    }
    return %0#2 : tensor<4xf32>
  }
}
"""
LOOP_DECIDED = """
module @jit_g {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%b = %zero, %c = %arg0) : tensor<i32>, tensor<4xf32>
    cond {
      %nine = stablehlo.constant dense<9> : tensor<i32>
      %1 = stablehlo.compare LT, %b, %nine : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.sine %c : tensor<4xf32>
      %1 = stablehlo.add %b, %one : tensor<i32>
      stablehlo.return %1, %2 : tensor<i32>, tensor<4xf32>
    }
    return %0#1 : tensor<4xf32>
  }
}
"""
MANUAL = """
module @jit_f {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0:2 = sdy.manual_computation(%c, %arg0) in_shardings=[<@mesh, []>, <@mesh, [{"x"}]>]
        out_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>] manual_axes={"x", "y"} (%a: tensor<i32>, %b: tensor<2xf32>) {
      %1 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<i32>) -> tensor<1xi32>
      %2 = stablehlo.sine %b : tensor<2xf32>
      sdy.return %1, %2 : tensor<1xi32>, tensor<2xf32>
    } : (tensor<i32>, tensor<4xf32>) -> (tensor<1xi32>, tensor<4xf32>)
    %3 = stablehlo.reshape %0#0 : (tensor<1xi32>) -> tensor<i32>
    %4 = "stablehlo.case"(%3) ({
      stablehlo.return %arg0 : tensor<4xf32>
    }, {
      stablehlo.return %0#1 : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    return %4 : tensor<4xf32>
  }
}
"""
MANUAL_DECIDED = """
module @jit_f {
  sdy.mesh @other = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@other, [{"x"}]>] out_shardings=[<@other, [{"x"}]>]
        manual_axes={"x", "y"} (%b: tensor<2xf32>) {
      %2 = stablehlo.sine %b : tensor<2xf32>
      sdy.return %2 : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


def graph(text: str, platform: int | None = None) -> Graph:
    """The graph of a module in assembly."""
    with jax_mlir.make_ir_context():
        return Graph.of(ir.Module.parse(text), platform)


def edited(text: str, *edits: tuple[str, str]) -> str:
    """The text with replacements, each of which must have something to replace."""
    for old, new in edits:
        assert old in text, f"nothing to edit: {old}"
        text = text.replace(old, new)
    return text


def swapped(text: str, first: str, second: str) -> str:
    """The text with two pieces in each other's place."""
    return edited(text, (first, "\0"), (second, first), ("\0", second))


NOTE = "stablehlo.custom_call @note(%0) {has_side_effect = true} : (tensor<4xf32>) -> ()"
NOTE_AGAIN = "stablehlo.custom_call @note_again(%arg1) {has_side_effect = true} : (tensor<4xf32>) -> ()"
CALL = "%0 = call @scale(%arg1, %table) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"
CASE = """%1 = "stablehlo.case"(%arg0)"""
ONE = "%one = stablehlo.constant dense<1.0> : tensor<f32>"
SINE = "%5 = stablehlo.sine %0 : tensor<4xf32>"


def before(place: str, *lines: str) -> tuple[str, str]:
    """An edit that puts lines before a place."""
    return place, "\n    ".join([*lines, place])


def instead(place: str, *lines: str) -> tuple[str, str]:
    """An edit that puts lines into a place."""
    return place, "\n    ".join(lines)


def table_by_case(index: str, first: str = "%arg1") -> list[tuple[str, str]]:
    """Edits that choose the second argument of the call by a case whose last branch is the table."""
    return [
        before(
            CALL,
            f'%t = "stablehlo.case"({index}) ({{',
            f"  stablehlo.return {first} : tensor<4xf32>",
            "}, {",
            "  stablehlo.return %table : tensor<4xf32>",
            "}) : (tensor<i32>) -> tensor<4xf32>",
        ),
        ("@scale(%arg1, %table)", "@scale(%arg1, %t)"),
    ]


WRONG = {
    "swapped branches": swapped(BASE, "stablehlo.sine", "stablehlo.cosine"),
    "changed constant": edited(BASE, ("dense<1.0>", "dense<1.5>")),
    "one changed element": edited(BASE, ("2.0, 3.0", "2.0, 3.5")),
    "sign of an element": edited(BASE, ("2.0, 3.0", "2.0, -3.0")),
    "changed attribute": edited(BASE, ("dims = [1, 0]", "dims = [0, 1]")),
    "additional attribute": edited(
        BASE, ("stablehlo.sine %0", 'stablehlo.sine %0 {mhlo.frontend_attributes = {a = "b"}}')
    ),
    "swapped operands": edited(BASE, ("subtract %arg0, %arg1", "subtract %arg1, %arg0")),
    "swapped arguments of a call": edited(BASE, ("@scale(%arg1, %table)", "@scale(%table, %arg1)")),
    "dropped side effect": edited(BASE, (NOTE, "")),
    "doubled side effect": edited(BASE, before(NOTE, NOTE)),
    "order of side effects": swapped(BASE, NOTE, NOTE_AGAIN),
    "operand of a side effect": edited(BASE, ("@note(%0)", "@note(%arg1)")),
    "changed argument type": edited(
        BASE,
        ("%arg0: tensor<i32>,", "%arg0: tensor<ui32>,"),
        before(CASE, "%i = stablehlo.convert %arg0 : (tensor<ui32>) -> tensor<i32>"),
        (CASE, CASE.replace("%arg0", "%i")),
    ),
    "changed inner type": edited(
        BASE,
        instead(
            SINE,
            "%6 = stablehlo.convert %0 : (tensor<4xf32>) -> tensor<4xf16>",
            "%7 = stablehlo.sine %6 : tensor<4xf16>",
            "%5 = stablehlo.convert %7 : (tensor<4xf16>) -> tensor<4xf32>",
        ),
    ),
    "other mesh": edited(BASE, ('<["x"=2, "y"=2]>', '<["x"=4, "y"=1]>')),
    "other sharding": edited(BASE, ('[{"y"}]', '[{"x"}]')),
    "sharding of an argument": edited(BASE, ('@mesh, [{"x"}]', "@mesh, [{}]")),
    "attribute of a result": edited(BASE, ('"result"', '"other"')),
    "other result": edited(BASE, ("return %3, %4", "return %2, %4")),
    "body of a reduction": edited(BASE, ("applies stablehlo.add", "applies stablehlo.multiply")),
    "name of a composite": edited(BASE, ('"test.c"', '"test.d"')),
    "body of a composite": edited(BASE, ("stablehlo.tanh", "stablehlo.negate")),
    "index of a case": edited(
        BASE, before(CASE, "%i = stablehlo.negate %arg0 : tensor<i32>"), (CASE, CASE.replace("%arg0", "%i"))
    ),
    "other branch of a case on a constant": edited(
        BASE, before(CALL, "%k = stablehlo.constant dense<0> : tensor<i32>"), *table_by_case("%k")
    ),
    "number of partitions": edited(BASE, ("num_partitions = 4", "num_partitions = 2")),
    "target of a custom call": edited(BASE, ("@note_again", "@note_otherwise")),
    "unused collective": edited(
        BASE,
        before(
            "return %3, %4",
            '%9 = "stablehlo.all_gather"(%3) <{all_gather_dim = 0 : i64, '
            "replica_groups = dense<[[0]]> : tensor<1x1xi64>}> : (tensor<4xf32>) -> tensor<4xf32>",
        ),
    ),
}
RIGHT = {
    "itself": BASE,
    "renamed values": re.sub(r"%(one|table)\b", r"%renamed_\1", BASE),
    "renamed functions": edited(BASE, ("@scale", "@other"), ("@decomposed", "@another")),
    "renamed mesh and module": edited(BASE, ("@mesh", "@mesh_0"), ("@jit_f", "@jit_g")),
    "inlined call": edited(
        BASE,
        instead(
            CALL,
            "%s = stablehlo.subtract %arg1, %table : tensor<4xf32>",
            "%r = stablehlo.reshape %s : (tensor<4xf32>) -> tensor<2x2xf32>",
            "%t = stablehlo.transpose %r, dims = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>",
            "%0 = stablehlo.reshape %t : (tensor<2x2xf32>) -> tensor<4xf32>",
        ),
    ),
    "unused mesh": edited(BASE, ('sdy.mesh @unused = <["z"=4]>', "")),
    "dead code": edited(
        BASE, before(ONE, "%d = stablehlo.sine %arg1 : tensor<4xf32>", "%e = stablehlo.add %d, %d : tensor<4xf32>")
    ),
    "dead custom call": edited(
        BASE, before(ONE, "%d = stablehlo.custom_call @pure(%arg1) : (tensor<4xf32>) -> tensor<4xf32>")
    ),
    "constant in another place": edited(BASE, (ONE, ""), before("%4 = ", ONE)),
    "case on a constant": edited(
        BASE, before(CALL, "%k = stablehlo.constant dense<7> : tensor<i32>"), *table_by_case("%k")
    ),
    "case on a computed constant": edited(
        BASE,
        before(
            CALL,
            "%z = stablehlo.constant dense<0> : tensor<i32>",
            "%i = stablehlo.constant dense<1> : tensor<i64>",
            "%j = stablehlo.convert %i : (tensor<i64>) -> tensor<i32>",
            "%k = stablehlo.clamp %z, %j, %j : tensor<i32>",
        ),
        *table_by_case("%k"),
    ),
    "case with equal branches": edited(BASE, *table_by_case("%arg0", "%table")),
    "case with one branch": edited(
        BASE,
        instead(NOTE, '"stablehlo.case"(%arg0) ({', f"  {NOTE}", "  stablehlo.return", "}) : (tensor<i32>) -> ()"),
    ),
    "unused private function": BASE.rstrip().removesuffix("}") + "  func.func private @never() { return }\n}",
}


@pytest.mark.parametrize("name", WRONG)
def test_sees_what_is_wrong(name: str):
    difference = compare(graph(BASE), graph(WRONG[name]))
    assert difference is not None
    assert "\n" in difference or "effects" in difference, "a difference is told with both sides"
    assert compare(graph(WRONG[name]), graph(BASE)) is not None


@pytest.mark.parametrize("name", RIGHT)
def test_overlooks_what_does_not_matter(name: str):
    assert compare(graph(BASE), graph(RIGHT[name])) is None
    assert compare(graph(RIGHT[name]), graph(BASE)) is None


def test_splats_are_their_elements():
    def constant(elements: str) -> Graph:
        return graph(f"""
          func.func public @main() -> tensor<2x2xi8> {{
            %0 = stablehlo.constant dense<{elements}> : tensor<2x2xi8>
            return %0 : tensor<2x2xi8>
          }}""")

    assert compare(constant("3"), constant("[[3, 3], [3, 3]]")) is None
    assert compare(constant("3"), constant("[[3, 3], [3, 4]]")) is not None


def test_an_index_outside_the_range_takes_the_last_branch():
    def choice(index: int) -> Graph:
        return graph(f"""
          func.func public @main(%a: tensor<f32>) -> tensor<f32> {{
            %i = stablehlo.constant dense<{index}> : tensor<i32>
            %r = "stablehlo.case"(%i) ({{
              %s = stablehlo.sine %a : tensor<f32>
              stablehlo.return %s : tensor<f32>
            }}, {{
              %s = stablehlo.cosine %a : tensor<f32>
              stablehlo.return %s : tensor<f32>
            }}) : (tensor<i32>) -> tensor<f32>
            return %r : tensor<f32>
          }}""")

    assert compare(choice(1), choice(-1)) is None
    assert compare(choice(1), choice(99)) is None
    assert compare(choice(0), choice(1)) is not None


def test_what_a_loop_carries_in_vain_does_not_matter():
    assert compare(graph(LOOP), graph(LOOP_DECIDED)) is None
    assert compare(graph(edited(LOOP, ("%a = %one", "%a = %zero"))), graph(LOOP_DECIDED)) is not None


def test_what_a_loop_changes_is_not_known():
    changing = edited(LOOP, ("return %a, %1, %2", "return %1, %1, %2"))
    assert compare(graph(changing), graph(LOOP_DECIDED)) is not None


def test_what_a_loop_carries_and_uses_matters():
    doubled = edited(
        LOOP_DECIDED,
        before("%zero = ", "%twice = stablehlo.add %arg0, %arg0 : tensor<4xf32>"),
        ("%c = %arg0", "%c = %twice"),
    )
    assert compare(graph(LOOP_DECIDED), graph(doubled)) is not None
    assert compare(graph(LOOP_DECIDED), graph(edited(LOOP_DECIDED, ("LT,", "LE,")))) is not None


def test_what_a_manual_computation_takes_and_gives_in_vain_does_not_matter():
    assert compare(graph(MANUAL), graph(MANUAL_DECIDED)) is None


@pytest.mark.parametrize(
    "edit",
    [
        ('in_shardings=[<@other, [{"x"}]>]', 'in_shardings=[<@other, [{"y"}]>]'),
        ('out_shardings=[<@other, [{"x"}]>]', 'out_shardings=[<@other, [{"y"}]>]'),
        ("stablehlo.sine", "stablehlo.cosine"),
    ],
)
def test_what_a_manual_computation_does_matters(edit: tuple[str, str]):
    assert compare(graph(MANUAL), graph(edited(MANUAL_DECIDED, edit))) is not None


def test_calls_that_double_at_every_level_are_no_trouble():
    """Inlined, these are 2**40 additions."""

    def tower(leaf: str) -> Graph:
        levels = [
            f"""
            func.func private @level{n + 1}(%a: tensor<f32>) -> tensor<f32> {{
              %n = stablehlo.constant dense<{n}.0> : tensor<f32>
              %0 = func.call @level{n}(%a) : (tensor<f32>) -> tensor<f32>
              %1 = stablehlo.add %a, %n : tensor<f32>
              %2 = func.call @level{n}(%1) : (tensor<f32>) -> tensor<f32>
              %3 = stablehlo.multiply %0, %2 : tensor<f32>
              return %3 : tensor<f32>
            }}"""
            for n in range(40)
        ]
        return graph(f"""
          func.func public @main(%a: tensor<f32>) -> tensor<f32> {{
            %0 = call @level40(%a) : (tensor<f32>) -> tensor<f32>
            return %0 : tensor<f32>
          }}
          func.func private @level0(%a: tensor<f32>) -> tensor<f32> {{
            %0 = stablehlo.{leaf} %a : tensor<f32>
            return %0 : tensor<f32>
          }}
          {"".join(levels)}""")

    assert compare(tower("sine"), tower("sine")) is None
    assert compare(tower("sine"), tower("cosine")) is not None


def test_a_long_chain_is_no_trouble():
    def line(last: str) -> Graph:
        operations = [f"%{n + 1} = stablehlo.sine %{n} : tensor<f32>" for n in range(5000)]
        return graph(f"""
          func.func public @main(%a: tensor<f32>) -> tensor<f32> {{
            %0 = stablehlo.{last} %a : tensor<f32>
            {chr(10).join(operations)}
            return %5000 : tensor<f32>
          }}""")

    assert compare(line("sine"), line("sine")) is None
    difference = compare(line("sine"), line("cosine"))
    assert difference is not None
    assert "stablehlo.cosine" in difference
    assert len(difference.splitlines()) < 40


MARKED = '%arg0: tensor<i32> {jax.global_constant = "_platform_index"}, %arg1: tensor<f32>'
PLATFORM = f"""
module @jit_f {{
  func.func public @main({MARKED}) -> tensor<f32> {{
    %0 = call @inner(%arg0, %arg1) : (tensor<i32>, tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }}
  func.func private @inner({MARKED}) -> tensor<f32> {{
    %0 = "stablehlo.case"(%arg0) ({{
      %1 = stablehlo.sine %arg1 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }}, {{
      %1 = stablehlo.cosine %arg1 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }}) : (tensor<i32>) -> tensor<f32>
    return %0 : tensor<f32>
  }}
}}
"""
SPLIT = """
module @jit_f {
  func.func public @main(%arg1: tensor<f32>) -> tensor<f32> {
    %1 = stablehlo.cosine %arg1 : tensor<f32>
    return %1 : tensor<f32>
  }
}
"""


def test_a_module_can_be_read_for_one_platform():
    assert compare(graph(PLATFORM, platform=1), graph(SPLIT)) is None
    assert compare(graph(PLATFORM, platform=0), graph(SPLIT)) is not None


def test_remains_of_the_platform_are_found():
    assert graph(SPLIT).platform_remains() == []
    assert len(graph(PLATFORM).platform_remains()) == 2
    left_over = edited(
        SPLIT,
        instead(
            "return %1 : tensor<f32>",
            "%i = stablehlo.constant dense<1> : tensor<i32>",
            '%2 = "stablehlo.case"(%i) ({ stablehlo.return %arg1 : tensor<f32> }, '
            "{ stablehlo.return %1 : tensor<f32> }) : (tensor<i32>) -> tensor<f32>",
            "return %2 : tensor<f32>",
        ),
    )
    assert len(graph(left_over).platform_remains()) == 1
    assert graph(left_over).platform_remains(graph(left_over)) == [], "what the original decides itself may stay"


def test_attributes_of_private_arguments_must_fit_the_value():
    """A dimension variable stays marked as what it is, wherever it is handed on."""
    text = """
    func.func public @main(%arg0: tensor<i32>, %arg1: tensor<i32>) -> tensor<i32> {
      %0 = call @inner(%arg0, %arg1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      return %0 : tensor<i32>
    }
    func.func private @inner(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<i32>) -> tensor<i32> {
      %0 = stablehlo.add %arg0, %arg1 : tensor<i32>
      return %0 : tensor<i32>
    }"""
    moved = edited(
        text,
        (' {jax.global_constant = "b"}, %arg1: tensor<i32>', ', %arg1: tensor<i32> {jax.global_constant = "b"}'),
    )
    assert compare(graph(text), graph(text)) is None
    assert compare(graph(text), graph(moved)) is not None
