#!/usr/bin/env python3
"""A graph in Python that knows the part of Cypher of relay/fixtures/graph-questions/README.md."""

import os
import posixpath
import re
import subprocess

import cypher
from relay_part import Part, PartError

WORK_TREE = "WORKTREE"
IMPORT = re.compile(r"""^\s*(?:import|export)\b.*?['"](\.[^'"]*)['"]""", re.MULTILINE)
EXPORT = re.compile(r"^export (?:function|const) (\w+)", re.MULTILINE)
SOURCES = (".ts", ".tsx", ".js")
ENDINGS = ("", ".ts", ".tsx", ".js", "/index.ts")
# Seconds that one run of git may take.
GIT_PATIENCE = 30


class Graph(Part):
    kind = "graph"
    name = "graph.py"

    def start(self):
        self.commits = {}
        self.latest = None

    def git(self, *arguments):
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
        ran = subprocess.run(["git", "-C", self.directory, *arguments], env=environment, stdin=subprocess.DEVNULL,
                             capture_output=True, timeout=GIT_PATIENCE)
        if ran.returncode:
            raise PartError("EGIT", f"git {arguments[0]} failed: {ran.stderr.decode('utf-8', 'replace').strip()}")
        return ran.stdout.decode("utf-8", "replace")

    def resolve(self, name):
        try:
            return self.git("rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}").strip()
        except PartError:
            raise PartError("ENOTFOUND", f"`{name}` is no commit") from None

    def snapshot(self, commit, parents):
        paths = [path for path in self.git("ls-tree", "-r", "-z", "--name-only", commit).split("\0") if path]
        files = {path: self.git("show", f"{commit}:{path}") for path in paths}
        renames = set()
        if parents:
            renames |= self.commits[parents[0]]["renames"] if parents[0] in self.commits else set()
            words = self.git("diff-tree", "-r", "-z", "-M", "--diff-filter=R", "--name-status", parents[0], commit)
            words = words.split("\0")
            for at in range(0, len(words) - 2, 3):
                renames.add((words[at + 2], words[at + 1]))
        # Only what leads from a living file into its past is remembered.
        living, reached = set(), list(files)
        while reached:
            path = reached.pop()
            for rename in renames - living:
                if rename[0] == path:
                    living.add(rename)
                    reached.append(rename[1])
        return {"files": files, "renames": living}

    def work_tree(self):
        listed = self.git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
        files = {}
        for path in filter(None, listed):
            place = os.path.join(self.directory, path)
            if os.path.isfile(place) and not os.path.islink(place):
                with open(place, encoding="utf-8", errors="replace") as file:
                    files[path] = file.read()
        return {"files": files, "renames": set()}

    def meant(self, commit):
        if commit == WORK_TREE:
            return self.work_tree(), {"ref": commit, "commit": "", "draft": True, "behind": False}
        found = self.resolve(commit) if commit else self.latest
        if found not in self.commits:
            raise PartError("ENOTFOUND", f"`{commit}` was not ingested", help="ingest it first")
        return self.commits[found], {"ref": commit or found, "commit": found, "draft": False, "behind": False}

    def ask(self, snapshot, standing, question):
        chain = cypher.Chain(question["query"], question.get("params") or {})
        rows = chain.rows(*self.facts(snapshot))
        return {"columns": chain.columns, "rows": rows, "truncated": False, **standing}

    def facts(self, snapshot):
        """Nodes, and relationships as (start, type, end) with numbers of nodes."""
        nodes, links, number = [], [], {}

        def file(path):
            if path not in number:
                number[path] = len(nodes)
                # What is an end of a rename and no file any more is seen over that rename alone.
                nodes.append({"label": "File", "gone": path not in snapshot["files"], "path": path,
                              "name": posixpath.basename(path)})
            return number[path]

        for path in snapshot["files"]:
            file(path)
        for new, old in sorted(snapshot["renames"]):
            links.append((file(new), "WAS_RENAMED_FROM", file(old)))
        for path, text in snapshot["files"].items():
            if not path.endswith(SOURCES):
                continue
            links += [(file(path), "IMPORTS", file(target)) for target in sorted(set(self.imported(snapshot, path, text)))]
            for name in sorted(set(self.defined(text))):
                links.append((file(path), "DEFINES", len(nodes)))
                nodes.append({"label": "Symbol", "gone": False, "path": path, "name": name})
        return nodes, links

    def imported(self, snapshot, path, text):
        for target in IMPORT.findall(text):
            found = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            yield from [found + ending for ending in ENDINGS if found + ending in snapshot["files"]][:1]

    def defined(self, text):
        return EXPORT.findall(text)

    def on_ingest(self, _request, params):
        name = params["commit"]
        commit = self.resolve("HEAD" if name == WORK_TREE else name)
        new = 0
        for line in self.git("rev-list", "--topo-order", "--reverse", "--parents", commit).splitlines():
            one, *parents = line.split()
            if one not in self.commits:
                self.commits[one] = self.snapshot(one, parents)
                new += 1
        self.latest = commit
        files = len(self.commits[commit]["files"])
        return {"commit": commit, "commits": new, "parsed": 0, "files": files, "broken": 0}

    def on_query(self, _request, params):
        snapshot, standing = self.meant(params.get("commit"))
        return self.ask(snapshot, standing, params)

    def on_propose(self, _request, params):
        before, standing = self.meant(WORK_TREE)
        files = dict(before["files"])
        for change in params["changes"]:
            if change["content"] is None:
                files.pop(change["path"], None)
            else:
                files[change["path"]] = change["content"]
        after = {**before, "files": files}
        return [[self.ask(one, standing, question) for one in (before, after)] for question in params["questions"]]


if __name__ == "__main__":
    Graph().run()
