# SPDX-License-Identifier: Apache-2.0
"""What the program says beside its results: welcome, help, suggestions, errors for machines, completions, pages made again."""
import json
import re
import shlex
import subprocess
import unittest

from support import BAD_INPUT, BUDGET as BUDGET_REFUSED, BUDGET_FLAGS, INTERNAL, PROGRAM, SOURCE, USAGE, AppTest

PATIENTS = [SOURCE / "examples" / "patients.csv", "--schema", SOURCE / "examples" / "patients.toml"]
BUDGET = ["--epsilon", "2", "--delta", "1e-6", "--no-ledger", "--quiet"]


class Terminal(AppTest):
    def test_alone_it_says_what_it_is(self):
        text = self.run_program().stdout
        self.assertLessEqual(len(text.splitlines()), 11)
        self.assertGreaterEqual(sum(line.startswith("  eigenveil ") for line in text.splitlines()), 3)

    def test_help_of_a_command(self):
        self.assertEqual(self.run_program("help", "pca").stdout, self.run_program("pca", "--help").stdout)
        self.assertEqual(self.run_program("help", "ledger", "create").stdout,
                         self.run_program("ledger", "create", "--help").stdout)
        self.assertIn("did you mean covariance?", self.run_program("help", "covarianc", expect=USAGE).stderr)

    def test_help_wraps_at_the_width(self):
        for width in (70, 120):
            text = subprocess.run([PROGRAM, "pca", "--help"], capture_output=True, text=True,
                                  env={"COLUMNS": str(width)}).stdout
            options = text.split("Options:")[1].split("Example")[0].splitlines()
            self.assertLessEqual(max(len(line) for line in options), width)
            self.assertGreater(max(len(line) for line in options), width - 25)

    def test_did_you_mean(self):
        for words, meant in ((["pca", *PATIENTS, "--epsilom", "1"], "--epsilon"), (["pac"], "pca"),
                             (["ledger", "crate", "x"], "create"), (["pca", "--component=3"], "--components")):
            said = self.run_program(*words, expect=USAGE).stderr
            # Nothing else that may be missing too hides the word.
            self.assertRegex(said, f"^eigenveil: there is no \\S+; did you mean {meant}\\?\n")
        self.assertNotIn("did you mean", self.run_program("pca", "--wholly-unlike", expect=USAGE).stderr)
        self.assertIn("name a command first, as in 'eigenveil pca", self.run_program("--epsilom", "1", expect=USAGE).stderr)

    def test_errors_for_machines(self):
        for words, code, kind in ((["pca", "--json", "--epsilom", "1"], USAGE, "wrong usage"),
                                  (["pca", "missing.csv", "--json", "--header", "no", "--range", "0:1", "--components", "1",
                                    *BUDGET], BAD_INPUT, "bad input")):
            done = self.run_program(*words, expect=code)
            told = json.loads(done.stdout)
            self.assertEqual((told["exit_code"], told["kind"]), (code, kind))
            self.assertTrue(told["error"] in done.stderr or code == BAD_INPUT and "stderr" in told["error"])

    def test_a_value_of_a_row_goes_to_stderr_alone(self):
        self.write("d.csv", "a,b\n1,2\n3,Qzmarkqz\n")
        done = self.run_program("pca", "d.csv", "--header", "yes", "--range", "0:5", "--components", 1, *BUDGET, "--json",
                                expect=BAD_INPUT)
        self.assertIn("Qzmarkqz", done.stderr)
        self.assertNotIn("Qzmarkqz", done.stdout)
        self.assertEqual(json.loads(done.stdout)["kind"], "bad input")

    def test_errors_for_machines_of_every_kind(self):
        self.run_program("ledger", "create", "small", "--epsilon", 0.5, "--delta", "1e-6", "--ledger", "l.db")
        fit = ["pca", *PATIENTS, "--components", 2, "--epsilon", 2, "--delta", "1e-6", "--json"]
        for words, code, kind in ((["ledger", "show", "x", "--ledger", "none.db", "--json"], BAD_INPUT, "bad input"),
                                  ([*fit, "--dataset", "small", "--ledger", "l.db"], BUDGET_REFUSED, "budget refused"),
                                  ([*fit, "--engine", "cloud"], USAGE, "wrong usage")):
            done = self.run_program(*words, expect=code)
            told = json.loads(done.stdout)
            self.assertEqual((told["exit_code"], told["kind"]), (code, kind))
        # A disk that is full: no file may have more than 512 bytes.
        done = self.run_program("-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"", PROGRAM, *fit, "--no-ledger", "--yes",
                                program="/bin/sh", expect=INTERNAL)
        self.assertEqual(json.loads(done.stdout)["exit_code"], INTERNAL)

    def test_colour_is_for_terminals_alone(self):
        fit = ["pca", *PATIENTS, "--components", 2, *BUDGET, "--insecure-seed", 1, "--yes", "--force"]
        paint = "\x1b["
        code, shown = self.in_terminal(fit, TERM="xterm", NO_COLOR="")
        self.assertEqual(code, 0, shown)
        self.assertIn("\x1b[31mNOT PRIVATE:\x1b[0m", shown)
        self.assertIn("\x1b[31meigenveil:\x1b[0m", self.in_terminal(["pac"], TERM="xterm", NO_COLOR="")[1])
        for args, environment in ((fit, {"TERM": "xterm", "NO_COLOR": "1"}), (fit, {"TERM": "dumb"}),
                                  ([*fit, "--json"], {"TERM": "xterm"}), (["pac"], {"TERM": "xterm", "NO_COLOR": "1"})):
            with self.subTest(environment, args=args[-1]):
                self.assertNotIn(paint, self.in_terminal(args, **environment)[1])
        done = self.run_program(*fit)
        self.assertNotIn(paint, done.stdout + done.stderr)

    def test_numbers_out_of_range_are_answered_with_the_range(self):
        fit = ["pca", *PATIENTS, "--components", 2, *BUDGET]
        plain = lambda flag, value: [*fit[:fit.index("--epsilon")], *fit[fit.index("--epsilon") + 2:], "--epsilon", value] \
            if flag == "--epsilon" else [*fit, flag, value]
        for flag, value, words in (
                ("--epsilon", 5000, "--epsilon must lie between 0.000001 and 1000, but is 5000"),
                ("--epsilon", 0, "--epsilon must lie between 0.000001 and 1000, but is 0"),
                ("--row-bound", -1, "--row-bound must lie between 1e-100 and 1e100, but is -1"),
                ("--row-bound", "auto:1e-99", "--row-bound must lie between 1e-30 and 1e30, but is 1e-99"),
                ("--row-bound", 1e40, r"--row-bound must lie between 1e-30 and 1e30, but is 1e\+40"),
                ("--threads", 0, "--threads.* 0 .*1 (to|-) 1024"),
                ("--expected-rows", 0, "--expected-rows: must be a number from 1, but is '0'")):
            with self.subTest(flag, value=value):
                self.assertRegex(self.run_program(*plain(flag, value), expect=USAGE).stderr, words)
        at = fit.index("--delta") + 1
        done = self.run_program(*fit[:at], 3, *fit[at + 1:], expect=USAGE)
        self.assertIn("--delta must lie between 1e-300 and 0.5, but is 3", done.stderr)
        done = self.run_program("ledger", "create", "x", "--epsilon", 5000, "--delta", "1e-6", expect=USAGE)
        self.assertIn("--epsilon must lie between 0.000001 and 1000", done.stderr)
        at = fit.index("--components") + 1
        done = self.run_program(*fit[:at], 0, *fit[at + 1:], expect=USAGE)
        self.assertIn("--components: must be a number from 1, but is '0'", done.stderr)
        self.assertEqual(self.charged(), [])

    def test_a_guarantee_is_said_in_digits_that_people_read(self):
        done = self.run_program("pca", *PATIENTS, "--components", 2, *BUDGET, "--report", "r.html")
        self.assertIn("(2, 0.000001)-differentially private", done.stdout)
        self.assertIn("except with probability 0.000001 (1 in 1,000,000)", done.stdout)
        self.assertNotIn("1e-06", done.stdout + self.text("r.html"))

    def test_every_command_has_an_example(self):
        page = self.run_program("completions", "man").stdout
        for section in page.split("\n.SH ")[1:]:
            name = section.splitlines()[0]
            if name.startswith("eigenveil "):
                self.assertIn("Example", section, name)

    def test_examples_name_files_that_are_there_and_run(self):
        """What help shows of the fits and plans can be typed in the folder of the project."""
        (self.folder / "examples").symlink_to(SOURCE / "examples")
        for command in ("pca", "covariance", "cca", "fda", "sir", "regress", "plan", "plan pca", "plan covariance", "plan cca",
                        "plan fda", "plan sir", "plan regress", "plan clip", "schema init"):
            with self.subTest(command=command):
                text = re.split("Examples?:\n", self.run_program("help", *command.split()).stdout)[1]
                lines = re.findall(r"(?m)^  (eigenveil (?:.*\\\n)*.*)$", text)
                self.assertTrue(lines)
                for line in lines:
                    words = shlex.split(line.replace("\\\n", " "))[1:]
                    for word in words:
                        if word.startswith("examples/"):
                            self.assertTrue((SOURCE / word).exists(), word)
                    if "--from" not in words:
                        self.run_program(*words)

    def test_the_welcome_says_what_the_demo_shows(self):
        self.assertRegex(self.run_program().stdout, r"(?m)^  eigenveil demo .*Fashion-MNIST")

    def test_help_wraps_its_prose_and_its_commands(self):
        for command in ("pca", "site serve", "coordinate pca", "ledger create", "clip train"):
            text = self.run_program("help", *command.split()).stdout
            wide = [line for line in text.splitlines() if len(line) > 100]
            self.assertEqual(wide, [], command)
        example = self.run_program("help", "coordinate", "pca").stdout.split("Example:\n")[1]
        self.assertTrue(all(line.endswith("\\") for line in example.strip().splitlines()[:-1]), example)

    def test_bash_completes_commands_and_options(self):
        with open(self.path("completions"), "w") as file:
            file.write(self.run_program("completions", "bash").stdout)

        def completed(*words):
            line = " ".join(f"'{word}'" for word in ("eigenveil", *words))
            script = (f"source completions; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _eigenveil; "
                      'printf "%s\\n" "${COMPREPLY[@]}"')
            return subprocess.run(["bash", "-c", script], cwd=self.folder, capture_output=True, text=True,
                                  check=True).stdout.split()
        self.assertEqual(completed("cov"), ["covariance"])
        self.assertEqual(completed("ledger", "cr"), ["create"])
        self.assertEqual(completed("pca", "x.csv", "--epsi"), ["--epsilon"])
        self.assertEqual(completed("ledger", "create", "--allow"), ["--allow-model-based"])
        self.assertEqual(completed("pca", "complet"), ["completions"])  # the file

    def test_other_shells_and_the_man_page_tell_every_option(self):
        for shell in ("zsh", "fish"):
            text = self.run_program("completions", shell).stdout
            for name in ("regress", "components", "allow-model-based"):
                self.assertIn(name, text)
        page = self.run_program("completions", "man").stdout
        self.assertIn(".SH eigenveil ledger create", page)
        self.assertIn("\\-\\-epsilon", page)
        self.assertFalse([line for line in page.splitlines() if line.startswith("'")])
        self.run_program("completions", "cmd", expect=USAGE)

    def test_a_report_is_made_again(self):
        self.run_program("pca", *PATIENTS, "--components", 2, *BUDGET, "--out", "a.npz", "--report", "first.html")
        self.run_program("report", "a.npz", "--out", "again.html")
        self.assertEqual(self.text("again.html"), self.text("first.html"))
        self.run_program("regress", *PATIENTS, "--target", "systolic", *BUDGET, "--out", "b.npz")
        told = self.run_json("report", "a.npz", "b.npz", "--out", "both.html")
        self.assertEqual(told["models"], ["a.npz", "b.npz"])
        page = self.text("both.html")
        for part in ('href="#model-2"', 'id="model-2"', "Principal components", "Linear regression"):
            self.assertIn(part, page)
        self.assertIn("is not", self.run_program("report", "first.html", "--out", "x.html", expect=BAD_INPUT).stderr)

    def test_a_mistyped_ledger_is_not_made(self):
        for words in (["list"], ["show", "x"], ["verify"], ["release-unused", "x"]):
            self.assertIn("there is no ledger at", self.run_program("ledger", *words, "--ledger", "typo.db",
                                                                    expect=BAD_INPUT).stderr)
        self.assertEqual(self.files(), [])
        self.write("d.csv", "1,2\n3,4\n")
        fit = ["pca", "d.csv", "--header", "no", "--range", "0:9", "--components", 1, *BUDGET_FLAGS, "--out", "m.npz"]
        for who in ([], ["--dataset", "x"]):
            self.assertIn("there is no ledger at 'typo.db'", self.run_program(*fit, "--ledger", "typo.db", *who, expect=BAD_INPUT).stderr)
        self.run_program(*fit, "--dataset", "x", expect=BAD_INPUT)
        self.assertEqual(self.files(), ["d.csv"])
        self.assertEqual(self.charged(), [])

    def text(self, name):
        return (self.folder / name).read_text()


if __name__ == "__main__":
    unittest.main()
