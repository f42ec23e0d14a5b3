"""Runs `pip download` and nothing else: python -I -B driver.py DIRECTORY constrained|free

Before pip does anything, everything that starts a program is taken away. A source archive cannot be built then, whatever an index
or the metadata of a package says: pip builds in processes of its own. Files are opened in DIRECTORY and where Python and the
system are, so that no link of an index leads to a file of the project. A requirement that is an address is refused.
"""

import json
import os
import re
import resource
import runpy
import signal
import sys

# Seconds for the attempt to keep installed packages: pip tries version after version of a package that does not fit to them.
PATIENCE = 240

WRONG_PYTHON = 65
NO_PIP = 66

STARTS = frozenset([
    "ctypes.dlopen",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "os.system",
    "pty.spawn",
    "subprocess.Popen",
])

# An index may send a page without an end.
MAX_MEMORY = 4 << 30

SYSTEM = ("/usr", "/etc", "/dev", "/lib", "/lib64", "/run/systemd/resolve")

# What the kernel sets for an index and its certificates.
KEPT = frozenset(["PIP_CERT", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"])


def fail(code, line):
    sys.stderr.write("tgp: " + line + "\n")
    sys.stderr.flush()
    sys.exit(code)


def refuser(place):
    own = [place, sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.__file__)]
    folders = tuple(os.path.realpath(folder) + os.sep for folder in own + list(SYSTEM))
    realpath, fsdecode = os.path.realpath, os.fsdecode

    def refuse(event, arguments):
        if event == "open":
            path = arguments[0]
            if isinstance(path, (str, bytes)) and not realpath(fsdecode(path)).startswith(folders):
                raise PermissionError("this file is not opened here: %r" % (path,))
        elif event in STARTS:
            raise PermissionError("programs are not started here: " + event)

    return refuse


def refuse_addresses():
    """What is at an address was published under no name."""
    from pip._vendor.packaging import requirements

    parse = requirements.Requirement.__init__

    def checked(self, text):
        parse(self, text)
        if self.url:
            sys.stderr.write("tgp: address %s\n" % ascii(text)[:300])
            raise requirements.InvalidRequirement("addresses are not installed")

    requirements.Requirement.__init__ = checked


def find_pip():
    """pip of this Python, or the one that it brings for new environments."""
    import importlib.util

    if importlib.util.find_spec("pip") is not None:
        return
    import glob
    import sysconfig

    places = [sysconfig.get_config_var("WHEEL_PKG_DIR")]
    if importlib.util.find_spec("ensurepip") is not None:
        import ensurepip

        places.append(os.path.join(os.path.dirname(ensurepip.__file__), "_bundled"))
    wheels = [wheel for place in places if place for wheel in sorted(glob.glob(os.path.join(place, "pip-*.whl")))]
    if not wheels:
        fail(NO_PIP, "%s has no pip" % sys.executable)
    sys.path.insert(0, wheels[-1])


def check_python(place, version):
    with open(os.path.join(place, "requires-python")) as file:
        wanted = file.read().strip()
    if not wanted:
        return
    from pip._vendor.packaging.specifiers import SpecifierSet

    if not SpecifierSet(wanted).contains(version, prereleases=True):
        fail(WRONG_PYTHON, "the project needs Python %s, and %s is %s" % (wanted, sys.executable, version))


def report(place, version):
    program = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    with open(os.path.join(place, "interpreter.json"), "w") as file:
        json.dump({"version": version, "program": program, "implementation": sys.implementation.name}, file)


def name_missing(place):
    """Names the packages of which an index has no fitting version, or sources only."""
    try:
        with open(os.path.join(place, "pip.log"), errors="replace") as file:
            log = file.read(64 << 20)
    except OSError:
        return
    found = re.findall(r"satisfies the requirement (.{1,200}?) \(from versions: ([^()]*)\)", log)
    for wanted, versions in sorted(set(found)):
        if versions != "none":
            newest = versions.split(", ")[-1]
            sys.stderr.write("tgp: no version %s; the newest is %s\n" % (ascii(wanted)[1:-1], ascii(newest)[1:-1]))
    missing = {re.match(r"[A-Za-z0-9._-]*", wanted).group() for wanted, versions in found if versions == "none"}
    sources = set(re.findall(r"No sources permitted for ([A-Za-z0-9._-]+)", log))
    plain = {re.sub(r"[-_.]+", "-", name).lower() for name in sources}
    for name in sorted(missing):
        if re.sub(r"[-_.]+", "-", name).lower() in plain:
            sys.stderr.write("tgp: no wheel of %s\n" % name)


def main():
    place, mode = sys.argv[1], sys.argv[2]
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    if not hasattr(sys, "addaudithook"):
        fail(WRONG_PYTHON, "Python 3.8 or newer is needed, and %s is %d.%d" % ((sys.executable,) + sys.version_info[:2]))
    version = "%d.%d.%d" % sys.version_info[:3]
    for name in [name for name in os.environ if name.startswith("PIP_") and name not in KEPT]:
        del os.environ[name]
    os.environ["PIP_CONFIG_FILE"] = os.devnull
    find_pip()
    try:
        # Some versions of pip load it, which opens a library.
        import ctypes  # noqa: F401
    except ImportError:
        pass
    try:
        # It runs the loader of musl to learn its version, and remembers it.
        from pip._vendor.packaging import _musllinux

        _musllinux._get_musl_version(sys.executable)
    except (ImportError, AttributeError, OSError):
        pass
    refuse_addresses()
    sys.addaudithook(refuser(place))
    report(place, version)
    check_python(place, version)
    sys.argv = [
        "pip",
        "download",
        "--only-binary=:all:",
        "--no-input",
        "--no-cache-dir",
        "--disable-pip-version-check",
        "--progress-bar=off",
        "--no-color",
        "--retries=1",
        "--log=" + os.path.join(place, "pip.log"),
        "--dest=" + os.path.join(place, "wheels"),
        "--requirement=" + os.path.join(place, "requirements.txt"),
    ]
    if mode == "constrained":
        signal.alarm(PATIENCE)
        sys.argv.append("--constraint=" + os.path.join(place, "constraints.txt"))
    try:
        runpy.run_module("pip", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        sys.stdout.flush()
        if end.code:
            name_missing(place)
        raise


main()
