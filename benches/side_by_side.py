"""Measures jaxprism beside the Python peer and beside plain copying, on the same input, in one run.

    python benches/side_by_side.py BINARY IN.jax_exported [--rounds N]

Whole processes are timed, in turn, after a round to warm up. Per command: the median wall time and its range, the largest resident memory,
and the largest anonymous memory (sampled each millisecond), which leaves out the pages of the input that are merely mapped. Memory is that
of the process itself. Ratios are to jaxprism: of time, the median of the ratios within each round, so that a slow moment counts for both;
of anonymous memory, between the peaks.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def memory(process):
    """Peak resident and present anonymous memory, in megabytes."""
    rows = {}
    try:
        with open(f"/proc/{process}/status") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name in ("VmHWM", "RssAnon"):
                    rows[name] = int(value.split()[0]) / 1024
    except (OSError, IndexError, ValueError):
        pass
    return rows.get("VmHWM", 0), rows.get("RssAnon", 0)


def measure(command, errors):
    errors.seek(0)
    errors.truncate()
    resident = anonymous = 0
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
    while process.poll() is None:
        now = memory(process.pid)
        resident, anonymous = max(resident, now[0]), max(anonymous, now[1])
        time.sleep(0.001)
    wall = time.perf_counter() - start
    if process.returncode:
        errors.seek(0)
        sys.exit(f"{' '.join(command)}\nfailed with status {process.returncode}:\n{errors.read()[-2000:]}")
    return wall, resident, anonymous


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("source")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    samples = {}
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(options.source))) as folder, open(
        os.path.join(folder, "errors"), "w+"
    ) as errors:
        copies = [os.path.join(folder, f"copy{number}") for number in range(3)]
        commands = {
            "jaxprism": [options.binary, "split", options.source, "-o", folder, "--force"],
            "peer": [sys.executable, os.path.join(HERE, "peer.py"), options.source, folder],
            "3 copies": ["sh", "-c", 'for to in "$2" "$3" "$4"; do cp --reflink=never "$1" "$to"; done', "sh", options.source, *copies],
        }
        for number in range(options.rounds + 1):
            for name, command in commands.items():
                sample = measure(command, errors)
                for output in os.listdir(folder):  # the next one starts from an empty folder
                    if output != "errors":
                        os.remove(os.path.join(folder, output))
                if number:
                    samples.setdefault(name, []).append(sample)

    size = os.path.getsize(options.source)
    print(f"{os.path.basename(options.source)}, {size:,} bytes, {options.rounds} rounds")
    print(f"{'':10}{'seconds':>9}{'range':>16}{'resident':>12}{'anonymous':>12}{'× time':>10}{'× anonymous':>13}")
    base = samples["jaxprism"]
    for name, rows in samples.items():
        walls = [wall for wall, _, _ in rows]
        resident, anonymous = (max(row[column] for row in rows) for column in (1, 2))
        line = f"{name:10}{statistics.median(walls):9.3f}{f'{min(walls):.3f}–{max(walls):.3f}':>16}{resident:9.0f} MB{anonymous:9.0f} MB"
        if name == "peer":
            times = statistics.median(row[0] / own[0] for row, own in zip(rows, base, strict=True))
            line += f"{times:10.1f}{anonymous / max(1e-9, max(row[2] for row in base)):13.1f}"
        print(line)


if __name__ == "__main__":
    main()
