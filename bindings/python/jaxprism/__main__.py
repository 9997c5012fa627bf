"""The command line: `jaxprism`, or `python -m jaxprism`: that of the program, and `verify --run`, which needs JAX."""

import argparse
import json
import signal
import sys
from typing import Any

from jaxprism import JaxprismError, _native, verify


def main() -> int:
    """Runs what the arguments ask for. Returns the exit status."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["verify"] and "--run" in arguments:
        return _verify_and_run(arguments[1:])
    # Nothing of Python's runs from here on that could answer it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.command_line(["jaxprism", *arguments])


def _verify_and_run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "jaxprism verify --run",
        description="Prove that exports are one export for one platform each, and run both in JAX.",
    )
    parser.add_argument("splits", nargs="+", metavar="SPLIT", help="the exports for one platform each")
    parser.add_argument("--against", required=True, metavar="ORIGINAL", help="the export that they were split from")
    parser.add_argument("--ignore-locations", action="store_true", help="do not compare source locations")
    parser.add_argument("--table", metavar="FILE", help="further platforms and targets that callbacks were lowered to")
    parser.add_argument("--seed", type=int, default=0, help="of the random arguments [default: 0]")
    parser.add_argument("--run", action="store_true", help="compare numbers in JAX as well")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    shared = {name: getattr(options, name) for name in ("against", "ignore_locations", "table", "run", "seed")}
    try:
        found = [{"path": path, **verify(path, **shared)} for path in options.splits]
    except JaxprismError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if error.kind in ("io", "bug") else 1
    verified = all(each["verified"] for each in found)
    if options.json:
        print(json.dumps({"verified": verified, "original": options.against, "splits": found}, indent=2))
    else:
        print("\n".join(line for each in found for line in _told(each, options.against)))
    return 0 if verified else 1


def _told(found: dict[str, Any], original: str) -> list[str]:
    name, run = found["path"], found.get("run")
    is_proved = not found["differences"]
    lines = [f"`{name}` is {'' if is_proved else 'not '}proved to be `{original}` on {found['platform']}"]
    lines += [f"  {_place(difference)}{difference['what']}" for difference in found["differences"]]
    if run is None:
        return lines
    if run["skipped"] is not None:
        return [*lines, f"  not run: {run['skipped']}"]
    close = f", {run['close']} differ in the last bits" if run["close"] else ""
    lines.append(f"  run on {run['device']}: {run['identical']} results are identical{close}")
    return lines + [f"  {_place(difference)}{difference['what']}" for difference in run["differences"]]


def _place(difference: dict[str, Any]) -> str:
    parts = [f"level {difference['level']}" if difference["level"] else None, difference.get("function")]
    parts += [difference.get("operation"), difference.get("place")]
    if difference.get("result") is not None:
        parts.append(f"result {difference['result']}")
    return "".join(f"{part}: " for part in parts if part)


if __name__ == "__main__":
    sys.exit(main())
