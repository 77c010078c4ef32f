#!/usr/bin/env python3
"""Random deaths and stops, judged from outside.

Each run starts a graph, waits until it has run for a while, and does something to one of its
processes: SIGKILL, SIGTERM, or SIGSTOP and SIGCONT after a random time. Then it looks at what
docs/faults.md promises: how the run ends, whether the machine was safe in time, that it moved no
faster than before and not at all behind closed brakes, that services come back, and that nothing is
left behind. It shares no code with Sinew: it reads /proc, the CSV and the JSON report.

    tests/campaign/campaign.py --runs 300 --seed 1 [--sinew target/release/sinew] [--markdown]

Run N of a seed is always the same deed at the same time after the start; `--only N` repeats it.
Exit status: 0 all as documented, 1 something was not, 2 bad request.
"""

import argparse
import csv
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What a graph bears, from its file: cycles without a command, at 1 ms each.
AFTER_MS = 50
# The bar for safe outputs: `after`, and two cycles of the machine. Periods that the kernel lost are
# not among them.
BAR_CYCLES = AFTER_MS + 2
# Limits nearer than this to a bound say nothing of which end is right.
NEAR = 1.25
# The longest that a run may take to end, s: hanging domains are killed after 2 s + 3 s each.
END_S = 20
# A stopped process that is killed by nobody: a hang is found after so long.
HANG_MS = 2000
# Signals of `drives`.
ENABLED, CLOSED = "4", "1"


class Plan:
    """What is done in run `number` of a campaign; nothing but the seed decides it."""

    GRAPHS = ["arm", "robot"]
    CORE = ["control", "plant"]
    SERVICES = ["camera", "dashboard", "recorder", "monitor"]

    def __init__(self, seed, number):
        chance = random.Random(f"{seed}/{number}")
        self.number = number
        self.graph = chance.choice(self.GRAPHS)
        whom = ["supervisor"] + self.CORE * 2 + (self.SERVICES if self.graph == "robot" else [])
        self.whom = chance.choice(whom)
        self.deed = chance.choice(["SIGKILL", "SIGTERM", "freeze", "freeze"])
        self.after_s = chance.uniform(0.8, 3.0)
        self.frozen_ms = round(10 ** chance.uniform(0.7, 3.2)) if self.deed == "freeze" else 0

    def __str__(self):
        ms = f" {self.frozen_ms} ms" if self.frozen_ms else ""
        return f"run {self.number}: {self.graph}, {self.whom}, {self.deed}{ms}"


class Run:
    """One run of the program, from its start until nothing of it is left."""

    def __init__(self, sinew, plan, folder):
        self.plan, self.folder, self.wrong, self.notes = plan, folder, [], []
        # Why a run shows nothing of what it was to show.
        self.unseen = []
        self.sinew, self.figures = sinew, {}
        spec = ROOT / "graphs" / plan.graph / f"{plan.graph}.yaml"
        command = [sinew, "run", spec, "--json", "--csv", folder / "k.csv"]
        command += ["--set", "planner.laps=0"]
        if plan.graph == "robot":
            for value in ["dashboard.listen=127.0.0.1:0", "monitor.listen=127.0.0.1:0"]:
                command += ["--set", value]
            command += ["--set", f"recorder.folder={folder}/recordings"]
        self.shared = set(os.listdir("/dev/shm"))
        self.out = open(folder / "report.json", "w+")
        self.err = open(folder / "errors.txt", "w+")
        self.process = subprocess.Popen(command, stdout=self.out, stderr=self.err)

    def ask(self):
        """The status of the run, or None if nobody answers."""
        command = [self.sinew, "top", "--once", "--json", str(self.process.pid)]
        try:
            answer = subprocess.run(command, capture_output=True, timeout=10)
            return json.loads(answer.stdout) if answer.returncode == 0 else None
        except (subprocess.TimeoutExpired, json.JSONDecodeError):
            return None

    def wait_for(self, what, limit_s, good):
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            if self.process.poll() is not None:
                return None
            status = self.ask()
            if status and good(status):
                return status
            time.sleep(0.05)
        self.wrong.append(f"waited {limit_s} s in vain until {what}")
        return None

    def carry_out(self):
        plan = self.plan
        running = lambda it: all(d["state"] == "running" for d in it["domains"])
        status = self.wait_for("all domains run", 30, running)
        if not status:
            self.process.kill()
            self.process.wait()
            self.wrong.append("it did not start: " + self.errors()[:200])
            return
        time.sleep(plan.after_s)
        pids = {domain["name"]: domain["pid"] for domain in status["domains"]}
        self.pid = pids.get(plan.whom, self.process.pid)
        self.struck_ns = time.monotonic_ns()
        try:
            self.strike()
        except ProcessLookupError:
            # A run whose core holds waits to be told.
            self.process.terminate()
            self.process.wait(END_S)
            self.unseen.append("this machine was too busy: it had ended before the deed")
            return self.look_for_rest()
        self.watch()
        self.end()
        self.judge()
        self.look_for_rest()

    def strike(self):
        plan = self.plan
        # Between the clock and the signal this program may be held up: the bar counts from when the
        # signal was there for certain, figures from before it.
        if plan.deed == "freeze":
            os.kill(self.pid, signal.SIGSTOP)
            self.sent_ns = time.monotonic_ns()
            time.sleep(plan.frozen_ms / 1e3)
            self.frozen_ms = (time.monotonic_ns() - self.struck_ns) / 1e6
            try:
                os.kill(self.pid, signal.SIGCONT)
            except ProcessLookupError:
                self.notes.append("it was killed while it stood")
        else:
            os.kill(self.pid, getattr(signal, plan.deed))
            self.sent_ns = time.monotonic_ns()

    def watch(self):
        """What goes on is looked at for a while: services come back, the core holds or goes on."""
        plan = self.plan
        if plan.whom == "supervisor" and plan.deed != "freeze":
            return
        if plan.whom in Plan.SERVICES and plan.deed != "freeze":
            began = time.monotonic()
            back = lambda it: any(
                d["name"] == plan.whom and d["state"] == "running" and d["pid"] != self.pid
                for d in it["domains"]
            )
            # One that is told to stop ends well, and only `always` starts such a one again.
            ended = lambda it: any(
                d["name"] == plan.whom and d["state"] in ("running", "ended", "finished")
                for d in it["domains"]
            )
            killed = plan.deed == "SIGKILL"
            if self.wait_for(f"'{plan.whom}' is back", 10, back if killed else ended) and killed:
                self.figures["back_ms"] = (time.monotonic() - began) * 1e3
        time.sleep(0.5)

    def end(self):
        """A run that goes on, or holds, is told to stop; all end in time."""
        self.told_ns = None
        try:
            self.process.wait(0.5 if self.goes_on() is False else 0.01)
        except subprocess.TimeoutExpired:
            self.held = (self.ask() or {}).get("phase") == "held"
            if not self.held and self.goes_on() is False:
                # It ends by itself, or holds, as soon as its limits are over.
                until = time.monotonic() + END_S
                while time.monotonic() < until and self.process.poll() is None and not self.held:
                    self.held = (self.ask() or {}).get("phase") == "held"
                    time.sleep(0.05)
            if self.process.poll() is None:
                self.told_ns = time.monotonic_ns()
                self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.wrong.append(f"it did not end within {END_S} s")
            self.process.kill()
            self.process.wait()

    def goes_on(self):
        """Whether the core is to go on: True, False, or None where both are right."""
        plan = self.plan
        if plan.whom in Plan.SERVICES:
            return True
        if plan.deed != "freeze":
            return False
        if plan.whom == "supervisor":
            return True
        if self.frozen_ms * NEAR < AFTER_MS:
            return True
        return False if self.frozen_ms > AFTER_MS * NEAR else None

    def errors(self):
        self.err.seek(0)
        return self.err.read()

    def judge(self):
        plan, status, goes_on = self.plan, self.process.returncode, self.goes_on()
        if plan.whom == "supervisor" and plan.deed == "SIGKILL":
            if status != -signal.SIGKILL:
                self.wrong.append(f"status {status} of a program that was killed")
            return
        self.out.seek(0)
        try:
            report = json.load(self.out)
        except json.JSONDecodeError:
            self.wrong.append(f"no report: status {status}, {self.errors()[:200]}")
            return
        faults = report["faults"] + report.get("earlier_faults", [])
        whole = not report["records_lost"] and not (report["csv"] or {}).get("error")
        # A domain of the core that somebody else tells to stop does so in order, and that is a fault.
        good = goes_on or plan.whom == "supervisor"
        # What the core is to bear it bears on a machine that gives it its time.
        if good and status == 1 and faults and all(it["cause"] == "overrun" for it in faults):
            self.unseen.append(f"this machine was too busy: {faults[0]['text']}"[:120])
            return
        if goes_on is not None and whole:
            expected = 0 if good else 1
            if status != expected:
                texts = "; ".join(f"{it['domain']}: {it['text']}" for it in faults)[:240]
                self.wrong.append(f"status {status}, expected {expected}: {texts}")
        if plan.deed == "SIGKILL" and plan.whom in Plan.CORE:
            named = [it for it in faults if (it["domain"], it["cause"]) == (plan.whom, "died")]
            if not named:
                self.wrong.append(f"no fault 'died' of {plan.whom}: {faults}"[:240])
        if not whole:
            self.notes.append(f"{report['records_lost']} records lost: no figures of the machine")
            return
        self.judge_machine(goes_on)

    def judge_machine(self, goes_on):
        """By the CSV of the machine's process."""
        rows = list(csv.DictReader(open(self.folder / "k.plant.csv")))
        part = lambda row, name: [row[f"drives.{name}.{axis}"] for axis in range(6)]
        numbers = lambda row, name: [float(text) for text in part(row, name)]
        start = lambda row: int(row["start_ns"])
        speed = lambda row: max(abs(it) for it in numbers(row, "velocity_rad_per_s"))
        before = [row for row in rows if start(row) <= self.struck_ns]
        after = [row for row in rows if start(row) > self.struck_ns]
        if not before or ENABLED not in part(before[-1], "state"):
            self.notes.append("the drives were not on")
            return
        fastest = max(map(speed, before))
        for row in after:
            if speed(row) > 1.25 * fastest + 0.05:
                self.wrong.append(f"an axis at {speed(row):.2f} rad/s; before at most {fastest:.2f}")
                break
        closed = [at for at, row in enumerate(after) if part(row, "brake") == [CLOSED] * 6]
        if closed:
            held = after[closed[0]:]
            place = numbers(held[0], "position_rad")
            moved = max(
                abs(now - then) for row in held for now, then in zip(numbers(row, "position_rad"), place)
            )
            if moved > 1e-3:
                self.wrong.append(f"an axis moved {moved:.4f} rad behind closed brakes")
        safe = next((at for at, row in enumerate(after) if ENABLED not in part(row, "state")), None)
        if goes_on:
            if safe is not None and (self.told_ns is None or start(after[safe]) < self.told_ns):
                self.wrong.append("the machine stopped, and was to go on")
            return
        # When the machine's own process is struck there is no machine left to look at, but for one
        # that is told to stop.
        if self.plan.whom == "plant" and self.plan.deed != "SIGTERM":
            return
        if safe is None:
            if goes_on is False:
                self.wrong.append("the machine never got its safe output")
            return
        if goes_on is None and self.told_ns and start(after[safe]) >= self.told_ns:
            return
        self.figures["safe_ms"] = (start(after[safe]) - self.struck_ns) / 1e6
        cycles = sum(start(row) > self.sent_ns for row in after[: safe + 1])
        if goes_on is False and cycles > BAR_CYCLES:
            self.wrong.append(f"safe after {cycles} cycles; the bar is {BAR_CYCLES}")
        if closed:
            self.figures["brakes_ms"] = (start(after[closed[0]]) - self.struck_ns) / 1e6
        elif goes_on is False:
            self.wrong.append("the brakes were still open in the last row")

    def look_for_rest(self):
        """Nothing of the run is left; who has to end by itself has a while for it."""
        if self.process.returncode == -signal.SIGKILL:
            # What the kernel keeps of a killed supervisor, empty cgroups, the next run takes away.
            spec = ROOT / "graphs" / "arm" / "arm.yaml"
            subprocess.run([self.sinew, "run", spec, "--duration", "100ms"], capture_output=True)
        until = time.monotonic() + 10
        while (left := self.left()) and time.monotonic() < until:
            time.sleep(0.1)
        self.wrong += [f"left behind: {what}" for what in left]

    def left(self):
        number, left = str(self.process.pid), []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    environment = (folder / "environ").read_bytes().split(b"\0")
                    mark = [it for it in environment if it.startswith(b"SINEW_DOMAIN=")]
                    if any(f"-{number}-".encode() in it for it in mark):
                        left.append(f"process {folder.name}")
                except OSError:
                    pass
        groups = Path("/sys/fs/cgroup").rglob(f"sinew.{number}.*")
        left += [f"cgroup folder {it}" for it in groups]
        runtime = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
        for folder in [f"{runtime}/sinew", "/run/sinew", f"/tmp/sinew-{os.getuid()}"]:
            for below, _, files in os.walk(folder):
                left += [f"{below}/{it}" for it in files if number in it.split("-")[-1].split(".")]
        shared = set(os.listdir("/dev/shm")) - self.shared
        left += [f"/dev/shm/{it}" for it in shared if "sinew" in it]
        return left


def table(runs, markdown):
    """A row for each graph, deed and whom."""
    kinds = {}
    for run in runs:
        plan = run.plan
        sort = "service" if plan.whom in Plan.SERVICES else plan.whom
        deed = plan.deed
        if deed == "freeze":
            near = NEAR * AFTER_MS
            deed += f" < {AFTER_MS / NEAR:.0f} ms" if plan.frozen_ms * NEAR < AFTER_MS else (
                f" > {near:.0f} ms" if plan.frozen_ms > near else " between"
            )
        kinds.setdefault((plan.graph, sort, deed), []).append(run)
    heads = ["graph", "whom", "what", "runs", "safe ms", "brakes ms", "back ms", "as documented"]
    lines = []
    for key, of_kind in sorted(kinds.items()):
        worst = lambda name: max((it.figures[name] for it in of_kind if name in it.figures), default=None)
        shown = [f"{it:.1f}" if it is not None else "-" for it in map(worst, ["safe_ms", "brakes_ms", "back_ms"])]
        good = sum(not it.wrong and not it.unseen for it in of_kind)
        unseen = sum(bool(it.unseen) and not it.wrong for it in of_kind)
        words = f"{good} of {len(of_kind)}" + (f", {unseen} not shown" if unseen else "")
        lines.append([*key, str(len(of_kind)), *shown, words])
    if markdown:
        rows = [heads, ["---"] * len(heads), *lines]
        return "\n".join("| " + " | ".join(row) + " |" for row in rows)
    widths = [max(len(row[at]) for row in [heads, *lines]) for at in range(len(heads))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths)) for row in [heads, *lines])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="only the run with this number")
    parser.add_argument("--sinew", type=Path, default=ROOT / "target/release/sinew")
    parser.add_argument("--markdown", action="store_true", help="the table for docs/figures/stops.md")
    arguments = parser.parse_args()
    if not arguments.sinew.exists():
        print(f"error: no {arguments.sinew}: build it, or name it by --sinew", file=sys.stderr)
        return 2
    numbers = range(arguments.runs) if arguments.only is None else [arguments.only]
    runs = []
    for number in numbers:
        plan = Plan(arguments.seed, number)
        with tempfile.TemporaryDirectory(prefix="sinew-campaign-") as folder:
            run = Run(arguments.sinew.resolve(), plan, Path(folder))
            try:
                run.carry_out()
            finally:
                if run.process.poll() is None:
                    run.process.kill()
                    run.process.wait()
        runs.append(run)
        words = "; ".join(run.wrong + run.unseen) or "as documented"
        notes = f" ({'; '.join(run.notes)})" if run.notes else ""
        print(f"{plan}: {words}{notes}", file=sys.stderr, flush=True)
    print(table(runs, arguments.markdown))
    bad = [run for run in runs if run.wrong]
    print(f"\n{len(runs)} runs, seed {arguments.seed}: {len(bad)} not as documented")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
