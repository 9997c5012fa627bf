from pathlib import Path
from typing import TypedDict

__version__: str

# What every function that makes an export is given; not there when it runs.
class OutputOptions(TypedDict):
    no_vjp: bool
    strip_sdy: bool

# What `split` is given; not there when it runs.
class Options(TypedDict):
    platforms: list[str]
    callbacks: str
    rules: list[str]
    on_unsupported: str | None
    table: str | None
    locations: str
    output: OutputOptions

# What `retarget` is given; not there when it runs.
class RetargetOptions(TypedDict):
    platforms: list[str]
    targets_allowed: list[str]
    map_targets: bool
    output: OutputOptions

def split(source: bytes | str, options: Options) -> tuple[list[tuple[str, bytes]], str, str]: ...
def split_to_files(source: bytes | str, options: Options, out: str) -> tuple[list[tuple[str, Path]], str, str]: ...
def strip(source: bytes | str, rules: list[str], output: OutputOptions) -> bytes: ...
def retarget(source: bytes | str, options: RetargetOptions, out: str | None) -> bytes | None: ...
def validate(source: bytes | str) -> None: ...
def unlower(source: bytes | str) -> bytes: ...
def info(source: bytes | str) -> str: ...
def callbacks(source: bytes | str, table: str | None) -> str: ...
def check(source: bytes | str, platforms: list[str], targets_allowed: list[str]) -> str: ...
def verify(original: bytes | str, split: bytes | str, ignore_locations: bool, table: str | None) -> str: ...
def command_line(arguments: list[str]) -> int: ...
