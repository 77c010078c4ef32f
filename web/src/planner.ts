// What people ask of the planner: another path, or a pause.

import { byId, make, say, setText } from "./dom";
import type { Hello, Motion, Order, SignalInfo } from "./protocol";

/** Signals by which a planner tells its state. */
const PAUSED = "paused";
const CHOSEN = "path_chosen";

export class PlannerPanel {
  private readonly form = byId<HTMLFormElement>("planner");
  private readonly select = byId<HTMLSelectElement>("path");
  private readonly pause = byId<HTMLButtonElement>("pause");
  private readonly said = byId("planner-said");
  private paused: SignalInfo | undefined;
  private chosen: SignalInfo | undefined;
  private is_paused = false;

  /** `order` sends an order; the text that comes back is shown. */
  constructor(private readonly order: (order: Order) => Promise<string>) {
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.select.addEventListener("change", () => this.ask({ do: "choose", path: this.select.selectedIndex }));
    this.pause.addEventListener("click", () => this.ask({ do: this.is_paused ? "resume" : "pause" }));
  }

  hello(hello: Hello): void {
    this.form.hidden = !hello.commands;
    const node = hello.path_signal === null ? undefined : hello.signals[hello.path_signal]?.node;
    const find = (name: string) => hello.signals.find((signal) => signal.node === node && signal.name === name);
    this.paused = find(PAUSED);
    this.chosen = find(CHOSEN);
    const names = hello.paths.map((path) => path.split("/").at(-1) ?? path);
    this.select.replaceChildren(...names.map((name, at) => make("option", { value: String(at), title: hello.paths[at] ?? "" }, name)));
  }

  /** Shows what the planner does now, not what was asked of it. */
  motion({ signals }: Motion): void {
    if (this.paused) this.showPaused((signals[this.paused.offset] ?? 0) !== 0);
    const chosen = this.chosen ? signals[this.chosen.offset] : undefined;
    const inUse = document.activeElement === this.select;
    if (chosen !== undefined && !inUse && this.select.selectedIndex !== chosen) this.select.selectedIndex = chosen;
  }

  enable(may_order: boolean): void {
    for (const control of [this.select, this.pause]) if (control.disabled === may_order) control.disabled = !may_order;
  }

  private async ask(order: Order): Promise<void> {
    try {
      say(this.said, await this.order(order), "good");
      if (!this.paused && order.do !== "choose") this.showPaused(order.do === "pause");
    } catch (error) {
      say(this.said, (error as Error).message, "bad");
    }
    this.select.blur();
  }

  private showPaused(paused: boolean): void {
    this.is_paused = paused;
    setText(this.pause, paused ? "Resume" : "Pause");
    this.pause.setAttribute("aria-pressed", String(paused));
  }
}
