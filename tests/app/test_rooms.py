# SPDX-License-Identifier: Apache-2.0
"""The rooms of the house: who includes whom, as the files say, beside what docs/architecture.md says."""
import collections
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ["EIGENVEIL_SOURCE_DIR"])
ROOFS = ("include/eigenveil", "src")


def used_rooms():
    graph = collections.defaultdict(dict)
    for roof in ROOFS:
        base = ROOT / roof
        for file in [*base.rglob("*.hpp"), *base.rglob("*.cpp")]:
            parts = file.relative_to(base).parts
            if len(parts) == 1:
                continue
            uses = graph[parts[0]]
            for included in re.findall(r'#include "([^"]+)"', file.read_text()):
                if included.startswith("eigenveil/"):
                    other = included.split("/")[1]
                elif included.startswith("../"):
                    other = (file.parent / included).resolve().relative_to(base.resolve()).parts[0]
                else:
                    continue
                if other != parts[0] and "." not in other:
                    uses.setdefault(other, f"{file.relative_to(ROOT)} includes {included}")
    return graph


def stated_rooms():
    rows = re.findall(r"^\| (\w+) \| ([^|]*) \|", (ROOT / "docs/architecture.md").read_text(), re.M)
    return {room: {word.strip() for word in uses.split(",")} - {"nothing"} for room, uses in rows if room != "room"}


def cycle_in(graph):
    done, path = set(), []

    def visit(room):
        if room in path:
            return path[path.index(room):] + [room]
        if room in done:
            return None
        path.append(room)
        for other in graph.get(room, ()):
            if (found := visit(other)):
                return found
        path.pop()
        done.add(room)
        return None

    return next((found for room in list(graph) if (found := visit(room))), None)


class Rooms(unittest.TestCase):
    def test_the_table_is_what_the_files_do(self):
        used, stated = used_rooms(), stated_rooms()
        folders = {path.name for roof in ROOFS for path in (ROOT / roof).iterdir() if path.is_dir()}
        self.assertEqual(set(stated), folders, "docs/architecture.md has a row for every room")
        for room in sorted(folders):
            new = {other: why for other, why in used.get(room, {}).items() if other not in stated[room]}
            self.assertEqual(new, {}, f"{room} uses rooms that the table does not list")
            self.assertEqual(stated[room] - set(used.get(room, {})), set(), f"{room} no longer uses these")

    def test_no_room_is_above_and_below_another(self):
        self.assertIsNone(cycle_in(used_rooms()))

    def test_engines_know_neither_jobs_nor_estimators(self):
        used = used_rooms()
        for room in ("wire", "mpi", "federation", "intake", "query", "rows", "privacy", "ledger"):
            for above in ("job", "estimators", "forecast", "papers", "front"):
                self.assertNotIn(above, used[room], used[room].get(above))


class Contract(unittest.TestCase):
    def test_estimators_read_no_plan(self):
        """The oracle holds it and says what a fit needs of it: `plans`, `planned_mu`, `planned_epsilon`, `total_mu`."""
        found = [str(file.relative_to(ROOT)) for roof in ROOFS for file in (ROOT / roof / "estimators").rglob("*.?pp")
                 if re.search(r"oracle(\.|->)plan\(\)", file.read_text())]
        self.assertEqual(found, [])

    def test_toml_comes_in_by_one_door(self):
        """Which has limits: toml++ has none for dotted keys."""
        found = [str(file.relative_to(ROOT)) for folder in ("src", "apps", "include", "python") for file in (ROOT / folder).rglob("*.?pp")
                 if "toml::parse" in file.read_text().replace("toml::parse_error", "")]
        self.assertEqual(found, ["src/data/toml_file.cpp"])

    def test_what_was_not_asked_for_is_refused_in_one_place(self):
        text = "".join(file.read_text() for roof in ROOFS for file in (ROOT / roof).rglob("*.?pp"))
        self.assertEqual(text.count("did not ask for all that was planned"), 1)


class Returns(unittest.TestCase):
    def test_nothing_returns_from_within_braces(self):
        """g++ destroys nothing of a half-made aggregate when a statement expression returns."""
        within = re.compile(r"(?:^\s*|\{|, )\.\w+ = EIGENVEIL_TRY\(|\w\{[^{}]*EIGENVEIL_TRY\(")
        found = [f"{file.relative_to(ROOT)}: {line.strip()}" for folder in ("src", "apps", "include")
                 for file in (ROOT / folder).rglob("*.?pp") for line in file.read_text().splitlines()
                 if within.search(line)]
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
