// The bar on top: what runs, whether what is shown is up to date, and the orders for the core.

import { byId, make, setState, setText } from "./dom";
import { count, NONE, rate, time, uptime } from "./format";
import type { Link } from "./connection";
import type { Figures, Hello, Status, Stop } from "./protocol";

/** What the bar counts, and of which graphs. */
const FACTS: [string, "all" | "core" | "flows"][] = [
  ["up", "all"], ["period", "core"], ["overruns", "core"], ["skipped", "core"], ["unseen", "core"], ["flows", "flows"],
  ["errors", "flows"], ["refused", "flows"], ["viewers", "all"],
];
const WITHOUT_TOKEN =
  "Looking on only: orders need the token. Open the address that `sinew run` printed; it ends in #token=…";

const RECORDED =
  "This page plays a recording and reaches no machine: stop, parameters and paths need a live run. Domains, events and camera are not in it.";

export class Bar {
  private readonly stop_button = byId<HTMLButtonElement>("stop");
  private readonly reset_button = byId<HTMLButtonElement>("reset");
  private readonly facts = new Map<string, HTMLElement>();
  /** Nodes in which flows begin. */
  private sources = new Set<string>();
  private hasCore = true;
  private notice = WITHOUT_TOKEN;

  /** `stop` and `reset` are what the buttons do; the Escape key stops too. */
  constructor(stop: () => void, reset: () => void) {
    this.stop_button.addEventListener("click", stop);
    this.reset_button.addEventListener("click", reset);
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.repeat || this.stop_button.disabled) return;
      event.preventDefault();
      stop();
    });
  }

  /** Builds what this graph has figures for. */
  private build(): void {
    const hasFlows = this.sources.size > 0;
    const shown = FACTS.filter(([, of]) => of === "all" || (of === "core" ? this.hasCore : hasFlows));
    this.facts.clear();
    const rows = shown.map(([name]) => {
      const value = make("dd", {}, NONE);
      this.facts.set(name, value);
      return make("div", {}, make("dt", {}, name), value);
    });
    byId("facts").replaceChildren(...rows);
  }

  hello(hello: Hello): void {
    setText(byId("graph-name"), hello.graph);
    byId("graph-name").title = `${hello.file}, Sinew ${hello.sinew}`;
    document.title = `${hello.graph} · Sinew`;
    this.hasCore = hello.threads.length > 0;
    this.sources = new Set(hello.picture.nodes.filter(({ flow, runs }) => flow === "source" && runs).map(({ name }) => name));
    this.stop_button.hidden = !this.hasCore;
    this.build();
    const timed = hello.threads.find((thread) => thread.timed) ?? hello.threads[0];
    this.fact("period", time(timed?.period_us));
  }

  status(status: Status, holds: boolean): void {
    const phase = byId("phase");
    setText(phase, status.phase);
    setState(phase, status.phase);
    phase.title = status.stop?.reason ?? "";
    this.fact("up", uptime(status.elapsed_ms));
    this.reset_button.hidden = !this.hasCore || !holds || status.phase !== "held";
    const flows = status.domains.flatMap(({ nodes }) => nodes).flatMap(({ name, flow }) => (flow && this.sources.has(name) ? [flow] : []));
    const sum = (of: "packets_per_s" | "errors" | "refused") => flows.reduce((all, flow) => all + flow[of], 0);
    this.fact("flows", rate(sum("packets_per_s")));
    this.fact("errors", count(sum("errors")));
    this.fact("refused", count(sum("refused")));
  }

  figures({ threads, viewers }: Figures): void {
    const sum = (of: "overruns" | "skipped" | "lost") => threads.reduce((all, thread) => all + thread[of], 0);
    this.fact("overruns", count(sum("overruns")));
    this.fact("skipped", count(sum("skipped")));
    // Cycles whose times this page did not get; the other counts are the core's own.
    this.fact("unseen", count(sum("lost")));
    this.fact("viewers", count(viewers));
  }

  /** Says clearly whether the page shows the present state of the machine. The sentence is read
   * aloud when it changes. The age of the data changes all the time, so it is only shown. */
  link(link: Link): void {
    const isFirst = link.state === "connecting" && link.first;
    // Before the first connection there is no data that could be old.
    document.body.dataset["link"] = isFirst ? "first" : link.state;
    const [chip, sentence] = sentences(link, this.hasCore);
    setState(byId("link"), link.state);
    setText(byId("link"), chip);
    const banner = byId("banner");
    banner.hidden = sentence === "";
    setState(banner, link.state === "connecting" ? "lost" : link.state);
    setText(byId("banner-says"), sentence);
    setText(byId("banner-age"), link.state === "old" ? `Nothing new for ${(link.age_ms / 1000).toFixed(1)} s.` : "");
  }

  /** The page shows a recorded run. */
  recorded(): void {
    this.notice = RECORDED;
  }

  enable(connected: boolean, has_token: boolean, phase: string): void {
    this.stop_button.disabled = !this.hasCore || !connected || !has_token || phase === "held";
    this.reset_button.disabled = !connected || !has_token;
    byId("notice").hidden = has_token;
    setText(byId("notice"), this.notice);
  }

  /** How long the last stop took, with what is known of it by now. */
  stopped({ reason, safe_output_us, brakes_closed_us, at_rest_us }: Stop, network_ms: number | null): void {
    const parts = [
      safe_output_us === null ? "" : `safe outputs ${when(safe_output_us)}`,
      brakes_closed_us === null ? "" : `brakes closed ${when(brakes_closed_us)}`,
      at_rest_us === null ? "" : `at rest ${when(at_rest_us)}`,
    ];
    const network = network_ms === null ? "" : ` (network ${time(network_ms * 1000)})`;
    const known = parts.filter((part) => part !== "").join(", ") || "measuring";
    this.report(`■ Stopped (${reason}): ${known}${network}`, "stop");
  }

  private fact(name: string, text: string): void {
    const value = this.facts.get(name);
    if (value) setText(value, text);
  }

  /** Shows a line about an order, or none. */
  report(text: string, state: string): void {
    const report = byId("stop-report");
    report.hidden = text === "";
    setState(report, state);
    setText(report, text);
  }
}

/** A time from the order on; what happened before the order has a negative time. */
function when(us: number): string {
  return us < 0 ? `already ${time(-us)} before` : `after ${time(us)}`;
}

/** A connection in a word, and what people must know of it. */
function sentences(link: Link, hasCore: boolean): [string, string] {
  switch (link.state) {
    case "recorded":
      return ["recorded", ""];
    case "live":
      return ["connected", ""];
    case "old":
      return ["data old", `▲ The data is old. What you see is not the ${hasCore ? "machine" : "run"} as it is.`];
    case "connecting":
      if (link.first) return ["connecting", "◌ Connecting …"];
      return ["disconnected", `✕ Disconnected${link.reason ? `: ${link.reason}` : ""}. Trying again.${hasCore ? " The stop button cannot reach the machine from here." : ""}`];
    case "ended":
      return ["ended", `✕ ${link.reason}. What you see is its last state; this page waits for the next run.`];
  }
}
