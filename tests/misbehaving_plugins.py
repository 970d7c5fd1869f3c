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
#: What a plugin does that outlasts its answer, or reaches beyond it; done by one plugin at a time.
AFTERMATHS: Final = {
    "interrupt": "raise KeyboardInterrupt",
    "recurse_c": "sys.setrecursionlimit(10**9)\ndeep = []\nfor _ in range(10**6): deep = [deep]\nreturn [repr(deep)]",
    "endless": "return (Finding('', 'k', 's', 'x') for _ in iter(int, 1))",
    "hang_in_generator": "return (time.sleep(3600) for _ in range(1))",
    "unknown_object": "return [lambda: 0, object(), type]",
    "signals_off": "[signal.signal(n, signal.SIG_IGN) for n in (2, 15, 17)]; return []",
    "numpy": "import numpy; numpy.asarray = numpy.zeros = None; numpy.seterr(all='raise'); return []",
    "builtins": "import builtins; builtins.len = builtins.sorted = None; return []",
    "modules": "sys.modules['json'] = sys.modules['re'] = None; return []",
    "trace": "def trace(*_): raise ValueError('traced')\nsys.settrace(trace); sys.setprofile(trace); return []",
    "warnings": "import warnings; warnings.simplefilter('error'); warnings.warn('now'); return []",
    "environment": "os.environ.clear(); import locale; locale.setlocale(locale.LC_ALL, 'C'); return []",
    "alarm_later": "[signal.setitimer(one, 0.05) for one in (signal.ITIMER_PROF, signal.ITIMER_VIRTUAL)]; return []",
    "print_later": "def say():\n    while True: print('rubbish', flush=True)\n"
    "threading.Thread(target=say, daemon=True).start(); return []",
    "writable": "next(iter(profile.phases[0].arrays.values())).flags.writeable = True; return []",
    "empty_profile": "[one.arrays.clear() for one in profile.phases]\n"
    "object.__setattr__(profile, 'actual_s', 1.0); return []",
    "exit_later": "threading.Timer(0.05, os._exit, (0,)).start(); return []",
    "kill_later": "threading.Timer(0.05, os.kill, (os.getpid(), 9)).start(); return []",
    "file_size": "kind = resource.RLIMIT_FSIZE; resource.setrlimit(kind, (0, resource.getrlimit(kind)[1])); return []",
    "cpu_time": "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass",
    "close_all": "os.closerange(0, 256); return []",
    "rubbish_everywhere": "[os.write(n, b'?') for n in range(3, 9) if os.path.exists(f'/proc/self/fd/{n}')]; return []",
    "close_stdout": "os.close(1); os.close(2); return []",
    "null_stdout": "os.dup2(os.open(os.devnull, os.O_WRONLY), 1); return []",
    "read_stdin": "sys.stdin.read(); return []",
    "hang_at_end": "atexit.register(time.sleep, 3600); return []",
    "hang_in_del": "class Bad:\n    def __del__(self): time.sleep(3600)\nsys.hoard = Bad(); return []",
    "daemon": "if os.fork() == 0:\n    os.setsid(); os.fork() or time.sleep(3600); os._exit(0)\nreturn []",
    "fork_and_return": "os.fork(); return []",
    "audit": "def hear(event, _):\n    if event == 'open': raise OSError\nsys.addaudithook(hear); return []",
    "unblock": "[os.set_blocking(stream, False) for stream in (0, 1, 2)]; return []",
    "delete_inputs": "import glob, shutil; [os.remove(one) for one in glob.glob(HOME + '/runs/*')]; return []",
    "delete_history": "import shutil; shutil.rmtree(HOME + '/state'); return []",
    "write_history": "open(HOME + '/state/history.sqlite', 'w').write('rubbish'); return []",
    "link": "os.symlink('/etc', HOME + '/runs/etc'); return []",
    "listen": "import socket; socket.socket(socket.AF_INET).bind(('127.0.0.1', 0)); return []",
    "gone_folder": "import tempfile; os.chdir(tempfile.mkdtemp()); os.rmdir(os.getcwd()); return []",
    "nice": "os.nice(19); os.sched_setaffinity(0, {0}); return []",
}
#: Plugins that never come as far as an answer.
IMPORTS: Final = {
    "syntax": "def (:",
    "no_encoding": "# coding: no-such\n",
    "import_loop": "while True: pass",
    "import_thread": "import os, threading\nthreading.Timer(0.05, os._exit, (0,)).start()",
    "import_interrupt": "raise KeyboardInterrupt",
    "import_base": "class Bad(BaseException): pass\nraise Bad",
    "import_missing": "import no_such_module",
}
GOOD: Final = """
@hookimpl
def advisor_findings(profile):
    return [Finding("", "seen", profile.program, "all is well")]
"""


def _indent(body: str, depth: int) -> str:
    return "\n".join("    " * depth + line for line in body.splitlines())


def write_plugin(folder: Path, deed: str, home: Path) -> None:
    """Write two good plugins and between them one that does ``deed``, one of any of the above."""
    folder.mkdir()
    for name in ("a_good", "z_good"):
        plugin(folder, name, GOOD)
    body = {**DEEDS, **ANSWERS, **AFTERMATHS}.get(deed)
    if body is None:
        plugin(folder, "m_bad", IMPORTS[deed])
        return
    head = f"{_MODULES}\nHOME = {str(home)!r}\n"
    plugin(folder, "m_bad", f"{head}@hookimpl\ndef advisor_findings(profile):\n{_indent(body, 1)}\n")


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
