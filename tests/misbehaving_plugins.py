"""Plugins that do to their process whatever can be done, each in a file of its own, beside two that behave well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from site_folder import plugin

if TYPE_CHECKING:
    from pathlib import Path

_MODULES: Final = "import atexit, ctypes, gc, os, resource, signal, sys, threading, time"
#: What a plugin does that costs it its own result, and may cost the process.
DEEDS: Final = {
    "exit_0": "os._exit(0)",
    "exit_3": "os._exit(3)",
    "abort": "os.abort()",
    "segfault": "ctypes.string_at(0)",
    "hang": "time.sleep(3600)",
    "burn": "while True: pass",
    "eat": "hoard = []\nwhile True: hoard.append(bytearray(1 << 28))",
    "stop": "os.kill(os.getpid(), signal.SIGSTOP)",
    "kill": "os.kill(os.getpid(), signal.SIGKILL)",
    "terminate": "signal.signal(signal.SIGTERM, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGTERM)",
    "kill_group": "os.killpg(0, signal.SIGKILL)",
    "close": "os.closerange(0, 256); os._exit(0)",
    "execute": "os.execv('/bin/true', ['true'])",
    "raise": "raise ValueError('no idea')",
    "sys_exit": "sys.exit(0)",
    "generator_exit": "raise GeneratorExit",
    "recurse": "f = lambda: f()\nf()",
    "children": "for _ in range(8):\n    if os.fork() == 0: time.sleep(3600)\ntime.sleep(3600)",
    "orphans": "if os.fork() == 0:\n    os.setsid()\n    os.fork()\n    time.sleep(3600)\ntime.sleep(3600)",
    "alarm_now": "signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(1)",
    "deadlock": "lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "fork_bomb": "end = time.monotonic() + 60\nwhile time.monotonic() < end: os.fork()",
}
#: What a plugin does at an answer of its own, and goes on.
ANSWERS: Final = {
    "write_raw": "os.write(1, b'rubbish'); print('x' * 100_000); return []",
    "no_stdout": "sys.stdout = None; return []",
    "wander": "os.chdir('/'); os.umask(0o777); return []",
    "text": "return 'no list'",
    "not_a_number": "return [float('nan')]",
    "many": "return [Finding('', 'k', 's', 'x')] * 100_000",
    "long": "return [Finding('', 'k', 's', 'x' * 10_000_000)]",
    "no_files": "kind = resource.RLIMIT_NOFILE; resource.setrlimit(kind, (3, resource.getrlimit(kind)[1])); return []",
    "at_exit": "atexit.register(os._exit, 0); return []",
    "thread": "threading.Thread(target=time.sleep, args=(3600,)).start(); return []",
    "patch": "import builtins, json; json.dumps = builtins.compile = None; return []",
    "network": "import socket; socket.create_connection(('192.0.2.1', 80), 60); return []",
}
GOOD: Final = """
@hookimpl
def advisor_findings(profile):
    return [Finding("", "seen", profile.program, "all is well")]
"""


def _indent(body: str, depth: int) -> str:
    return "\n".join("    " * depth + line for line in body.splitlines())


def write_plugins(folder: Path) -> set[str]:
    """Write all of them and two good ones; return the names of those that cannot have a result."""
    folder.mkdir()
    bad = set()
    for name, body in DEEDS.items():
        plugin(folder, f"find_{name}", f"{_MODULES}\n@hookimpl\ndef advisor_findings(profile):\n{_indent(body, 1)}\n")
        bad.add(f"find_{name}")
    for name in ("exit_0", "segfault", "hang", "raise", "sys_exit"):
        plugin(folder, f"import_{name}", f"{_MODULES}\n{DEEDS[name]}\n")
        bad.add(f"import_{name}")
    for hook in ("sniff(path)", "facts()"):
        reader = "@hookimpl\ndef advisor_read(path): pass\n" if "sniff" in hook else ""
        name = f"{hook.partition('(')[0]}_exit"
        plugin(folder, name, f"{_MODULES}\n@hookimpl\ndef advisor_{hook}:\n    os._exit(0)\n{reader}")
        bad.add(name)
    for name, body in ANSWERS.items():
        plugin(folder, f"say_{name}", f"{_MODULES}\n@hookimpl\ndef advisor_findings(profile):\n{_indent(body, 1)}\n")
    for name in ("a_good", "z_good"):
        plugin(folder, name, GOOD)
    return bad
