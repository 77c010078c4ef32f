// The log of events. What a service printed may be anything, so it is only ever shown as text.

import { byId, make, setText } from "./dom";
import { clock, words } from "./format";
import type { RunEvent } from "./protocol";

/** Rows kept; the run keeps as many. */
const ROWS_MAX = 1000;
/** Nearer to its end than this, the log follows new events, px. */
const END_PX = 24;

const TONES: Record<string, string> = {
  faulted: "bad", given_up: "bad", alarm: "bad", late: "warn", ended: "warn", restarting: "warn", stopping: "warn",
  ready: "good", started: "good", saved: "good", not_saved: "bad",
};

/** Styles of what nodes log, by level. */
const LOG_TONES: Record<string, string> = { warning: "warn", error: "bad" };

/** Shortest time between two events that are read aloud. */
const ALOUD_MS = 5000;

function tone({ logged, what }: RunEvent): string {
  return (logged ? LOG_TONES[logged.level] : TONES[what]) ?? "";
}

export class EventsPanel {
  private readonly box = byId("events");
  private readonly list = byId<HTMLOListElement>("events-list");
  private readonly filter = byId<HTMLInputElement>("events-filter");
  private readonly end = byId<HTMLButtonElement>("events-end");
  private readonly earlier = make("li", {});
  private follows = true;
  private top = 0;
  private said_ms = -ALOUD_MS;
  /** Times of the events by their numbers: another time for the same number means another run. */
  private readonly seen = new Map<number, number>();

  constructor() {
    this.filter.addEventListener("input", () => this.sift());
    this.box.addEventListener("scroll", () => this.scrolled());
    new ResizeObserver(() => this.toEnd()).observe(this.box);
    this.end.addEventListener("click", () => {
      this.follows = true;
      this.toEnd();
    });
  }

  /** Takes events, oldest first. After a reconnect some of them may be known, or some may be
   * missing. */
  events(events: RunEvent[]): void {
    if (this.isAnotherRun(events)) {
      this.seen.clear();
      this.list.replaceChildren();
    }
    this.earlier.remove();
    const missed = (events[0]?.number ?? 0) - this.newest() - 1;
    if (missed > 0 && this.seen.size > 0) this.list.append(make("li", {}, `${missed} events are kept no more`));
    const fresh = events.filter(({ number }) => !this.seen.has(number));
    // Events from before this page was opened are not news.
    if (this.seen.size > 0) this.sayAloud(fresh);
    for (const event of fresh) {
      this.seen.set(event.number, event.unix_ms);
      const row = this.row(event);
      row.hidden = !this.shows(row);
      this.list.append(row);
    }
    while (this.list.childElementCount > ROWS_MAX) this.list.firstElementChild?.remove();
    for (const number of this.seen.keys()) {
      if (this.seen.size <= ROWS_MAX) break;
      this.seen.delete(number);
    }
    this.countEarlier();
    this.toEnd();
  }

  /** Of many events only the last one that went wrong is read aloud; the log itself is not. */
  private sayAloud(events: RunEvent[]): void {
    const bad = events.filter((event) => tone(event) === "bad").at(-1);
    const isDue = performance.now() - this.said_ms > ALOUD_MS;
    if (!bad || !isDue) return;
    this.said_ms = performance.now();
    setText(byId("events-aloud"), `${bad.domain ?? ""} ${words(bad.what)}: ${bad.text}`);
  }

  /** How many events came before those that are shown: they are numbered from 1. */
  private countEarlier(): void {
    const count = Math.min(...this.seen.keys()) - 1;
    if (!(count > 0 && Number.isFinite(count))) return;
    this.earlier.textContent = `${count} earlier events are not shown; the run keeps its last ${ROWS_MAX}`;
    this.list.prepend(this.earlier);
  }

  /** The server's last events always include the newest, so lower numbers or other times mean
   * another run. */
  private isAnotherRun(events: RunEvent[]): boolean {
    const newest = this.newest();
    const last = events.at(-1)?.number ?? newest;
    return last < newest || events.some(({ number, unix_ms }) => (this.seen.get(number) ?? unix_ms) !== unix_ms);
  }

  /** Number of the newest event that is known. */
  private newest(): number {
    return Math.max(0, ...this.seen.keys());
  }

  private row(event: RunEvent): HTMLLIElement {
    const { unix_ms, domain, what, text } = event;
    return make(
      "li", { "data-state": tone(event) },
      make("time", { datetime: new Date(unix_ms).toISOString() }, clock(unix_ms)),
      make("span", { class: "of", title: domain ?? "" }, domain ?? ""),
      make("span", { class: "what" }, words(what)),
      make("span", { class: "text" }, text),
    );
  }

  private shows(row: HTMLElement): boolean {
    const wanted = this.filter.value.trim().toLowerCase();
    return (row.textContent ?? "").toLowerCase().includes(wanted);
  }

  private sift(): void {
    for (const row of this.list.children) (row as HTMLElement).hidden = !this.shows(row as HTMLElement);
    this.toEnd();
  }

  /** Scrolling back means reading; scrolling to the end means following. */
  private scrolled(): void {
    const { scrollHeight, scrollTop, clientHeight } = this.box;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < END_PX;
    if (isAtEnd || scrollTop < this.top) this.follows = isAtEnd;
    this.top = scrollTop;
    this.end.hidden = this.follows;
  }

  private toEnd(): void {
    if (this.follows) this.box.scrollTop = this.box.scrollHeight;
  }
}
