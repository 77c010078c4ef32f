// The table of domains: the state of each, why it ended last, and a way to restart a service.

import { byId, columnHead, make, say, setState, setText } from "./dom";
import { count, memory, NONE, uptime, words } from "./format";
import type { DomainStatus, HostStatus } from "./protocol";

const HEADS: [string, string][] = [
  ["domain", ""], ["state", ""], ["process", "number"], ["up", "number"], ["restarts", "number"], ["memory", "number"],
  ["ended last", ""], ["", ""],
];

const TONES: Record<string, string> = {
  running: "good", starting: "busy", ready: "busy", waiting: "busy", backoff: "warn", stopping: "warn",
  finished: "warn", ended: "warn", given_up: "bad", faulted: "bad",
};

interface Row {
  row: HTMLTableRowElement;
  called: HTMLElement;
  state: HTMLElement;
  figures: HTMLElement[];
  reason: HTMLElement;
  restart: HTMLButtonElement | null;
}

export class DomainsPanel {
  private rows = new Map<string, Row>();

  /** `restart` is asked to restart a service. */
  constructor(private readonly restart: (domain: string) => void) {}

  status(domains: DomainStatus[], may_order: boolean): void {
    if (domains.length !== this.rows.size || domains.some(({ name }) => !this.rows.has(name))) this.build(domains);
    for (const domain of domains) {
      const row = this.rows.get(domain.name);
      if (row) this.fill(row, domain, may_order);
    }
  }

  /** Shows the result of an order. */
  said(text: string, state: "good" | "bad"): void {
    say(byId("domains-said"), text, state);
  }

  private build(domains: DomainStatus[]): void {
    this.rows.clear();
    const heads = HEADS.map(([text, kind]) => columnHead(text, { class: kind }));
    const body = make("tbody");
    for (const domain of domains) {
      const row = this.row(domain);
      this.rows.set(domain.name, row);
      body.append(row.row);
    }
    byId("domains").replaceChildren(make("thead", {}, make("tr", {}, ...heads)), body);
  }

  private row({ name, role }: DomainStatus): Row {
    const called = make("span", {}, name);
    const state = make("span", { class: "state" });
    const figures = HEADS.slice(2, 6).map(() => make("td", { class: "number" }));
    const reason = make("td", { class: "reason" });
    const restart = role !== "realtime" ? make("button", { type: "button", "aria-label": `Restart ${name}` }, "restart") : null;
    restart?.addEventListener("click", () => this.restart(name));
    const kind = make("span", { class: "role" }, role === "realtime" ? " core" : role === "guest" ? " guest" : "");
    const row = make(
      "tr", {}, make("th", { scope: "row" }, called, kind), make("td", {}, state), ...figures, reason, make("td", {}, restart),
    );
    return { row, called, state, figures, reason, restart };
  }

  private fill(row: Row, domain: DomainStatus, may_order: boolean): void {
    setText(row.state, words(domain.state));
    setState(row.state, TONES[domain.state] ?? "warn");
    const { pid, up_ms, restarts, resident_kib, next_restart_ms } = domain;
    const texts = [pid?.toString() ?? NONE, pid ? uptime(up_ms) : NONE, count(restarts), memory(resident_kib)];
    row.figures.forEach((cell, at) => setText(cell, texts[at] ?? NONE));
    const next = next_restart_ms === null ? "" : `; again in ${(next_restart_ms / 1000).toFixed(1)} s`;
    setText(row.reason, [...(domain.hosts ?? []).map(host), (domain.last_reason ?? "") + next].filter(Boolean).join("; "));
    nameWithAddress(row.called, domain);
    if (row.restart) row.restart.disabled = !may_order;
  }
}

/** The state of another host. */
function host({ name, state, round_trip_us, late, misplaced = 0 }: HostStatus): string {
  const there = state === "heard" && round_trip_us ? `, ${(round_trip_us / 1000).toFixed(1)} ms there and back` : "";
  const dropped = [[late, "late"], [misplaced, "misplaced"]] as const;
  const counts = dropped.filter(([n]) => n > 0).map(([n, word]) => `, ${count(n)} ${word}`).join("");
  return `host ${name} ${words(state)}${there}${counts}`;
}

/** The name, as a link if the domain serves a page other than this one. */
function nameWithAddress(called: HTMLElement, { name, address }: DomainStatus): void {
  const isElsewhere = address !== null && /^https?:\/\//.test(address) && !address.includes("#");
  const shown = called.querySelector("a")?.getAttribute("href") ?? null;
  if (shown === (isElsewhere ? address : null)) return;
  called.replaceChildren(isElsewhere ? make("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, name) : name);
}
