// The page: one connection, a panel for each thing to see, and the calls between them.

import { ArmPanel } from "./arm";
import { Bar } from "./bar";
import { CameraPanel } from "./camera";
import { Connection, type Link, type Listener, type Source } from "./connection";
import { DomainsPanel } from "./domains";
import { byId, setText } from "./dom";
import { DrivesPanel } from "./drives";
import { EventsPanel } from "./events";
import { time } from "./format";
import { FlowNodePanel } from "./flow_node";
import { Layout } from "./layout";
import { mark } from "./marks";
import { MessagesPanel } from "./messages";
import { GraphPanel } from "./graph";
import { HistogramPanel } from "./histograms";
import { PlannerPanel } from "./planner";
import { Playback } from "./playback";
import { FLAG, VERSION, type Hello, type Motion, type Order, type Status, type Stop, type Text } from "./protocol";
import { ParametersPanel } from "./parameters";
import { Recording } from "./recording";
import { ScopePanel } from "./scope";
import { followTheme } from "./theme";
import { adopt, forget, token } from "./token";

/** If a running core shows no cycle for this long, what is shown of it is old. */
const CORE_OLD_MS = 700;

mark("script");

class Page {
  /** It must be first, because it says which panels there are, and where. */
  private readonly recording = Recording.find();
  private readonly bar = new Bar(() => void this.stop(), () => void this.reset());
  private readonly arm = new ArmPanel();
  private readonly drives = new DrivesPanel();
  private readonly graph = new GraphPanel((node) => this.flow_node.toggle(node));
  private readonly flow_node = new FlowNodePanel({
    chosen: (node) => this.graph.select(node),
    met: (met) => this.graph.mark(met),
    order: (order) => this.connection.order(order),
  });
  private readonly latency = new HistogramPanel("latency");
  private readonly jitter = new HistogramPanel("jitter");
  private readonly domains = new DomainsPanel((domain) => void this.restart(domain));
  private readonly events = new EventsPanel();
  private readonly camera = new CameraPanel();
  private readonly planner = new PlannerPanel((order) => this.connection.order(order));
  private readonly scope = new ScopePanel((order) => this.connection.ask(order));
  private readonly messages = new MessagesPanel((name) => {
    if (this.scope.add(name)) byId("scope").scrollIntoView({ block: "nearest" });
  });
  private readonly parameters = new ParametersPanel((order) => this.connection.order(order), () => this.arrange());
  private readonly layout = new Layout();
  private readonly connection: Source;
  private hello_: Hello | null = null;
  private status_: Status | null = null;
  private link_: Link = { state: "connecting", first: true, reason: "" };
  private stop_: Stop | null = null;
  private cycles: number[] = [];
  private cycled_ms = performance.now();

  constructor() {
    adopt();
    addEventListener("hashchange", () => adopt() && this.checkToken());
    followTheme(() => this.recolour());
    const listener: Listener = {
      link: (link) => this.link(link),
      hello: (hello) => this.hello(hello),
      text: (text) => this.text(text),
      motion: (motion) => this.motion(motion),
      image: (image) => void this.camera.image(image),
      values: (values) => this.messages.values(values),
      begin: () => this.arm.begin(),
    };
    if (this.recording) this.bar.recorded();
    this.connection = this.recording ? new Playback(this.recording, listener) : new Connection(address(), token, listener);
    document.addEventListener("visibilitychange", () => this.want());
    addEventListener("layout", () => this.want());
    this.showLink();
  }

  private hello(hello: Hello): void {
    if (hello.protocol !== VERSION) return location.reload();
    this.hello_ = hello;
    mark("hello");
    this.cycles = [];
    this.cycled_ms = performance.now();
    this.bar.hello(hello);
    this.arm.hello(hello);
    this.drives.hello(hello);
    this.graph.hello(hello.picture);
    this.flow_node.hello(hello.picture);
    this.showWhole(hello);
    this.latency.hello(hello);
    this.jitter.hello(hello);
    this.planner.hello(hello);
    this.messages.hello(hello);
    this.scope.hello(hello);
    byId("camera").hidden = !hello.camera;
    this.parameters.hello();
    if (this.recording) this.showRecorded(this.recording);
    this.arrange();
    void this.checkToken();
  }

  /** A recording has only cycles and messages. The scope begins with the traces that it has
   * whole. */
  private showRecorded({ traces }: Recording): void {
    for (const panel of document.querySelectorAll<HTMLElement>('[data-panel="domains"], [data-panel="events"]')) panel.hidden = true;
    this.scope.recorded(traces);
  }

  /** Takes the panels that there are now. */
  private arrange(): void {
    const { graph, picture } = this.hello_ ?? { graph: "", picture: { nodes: [] } };
    this.layout.hello(graph, picture.nodes.some(({ flow }) => flow !== null) ? ["flow"] : []);
    this.want();
  }

  /** A page without a core says nothing about a core. */
  private showWhole({ threads, picture }: Hello): void {
    document.body.dataset["core"] = threads.length > 0 ? "some" : "none";
    document.body.dataset["flows"] = picture.nodes.some(({ flow }) => flow !== null) ? "some" : "none";
    const skip = byId<HTMLAnchorElement>("skip");
    const to = byId("arm").hidden ? "graph" : "arm";
    skip.href = `#${to}`;
    setText(skip, `to the ${to}`);
  }

  private text(text: Text): void {
    switch (text.type) {
      case "status":
        return this.status(text.status);
      case "events":
        this.parameters.events(text.events);
        return this.events.events(text.events);
      case "tunables":
        return this.parameters.tunables(text.tunables);
      case "figures":
        for (const panel of [this.bar, this.graph, this.latency, this.jitter]) panel.figures(text);
        return;
      case "scope":
        return this.scope.show(text);
      case "tap":
        return this.flow_node.line(text.line);
      case "untapped":
        return this.flow_node.untapped(text.text);
      case "stop":
        this.stop_ = text;
        return this.showStop();
      case "error":
        return this.bar.report(`▲ ${text.text}`, "old");
    }
  }

  private status(status: Status): void {
    const was_stopped = this.isStopped();
    this.status_ = status;
    // When the core runs again, its last stop is over.
    if (status.phase === "running") this.stop_ = null;
    if (this.isStopped()) this.showStop();
    else if (was_stopped) this.bar.report("", "stop");
    this.bar.status(status, this.hello_?.holds ?? false);
    this.graph.status(status);
    this.flow_node.status(status);
    this.enable();
  }

  /** Shows the last stop for as long as the core is stopped. */
  private showStop(): void {
    if (this.stop_ && this.isStopped()) this.bar.stopped(this.stop_, this.connection.network_ms);
  }

  private isStopped(): boolean {
    return this.status_?.phase === "held" || this.status_?.phase === "stopping";
  }

  private motion(motion: Motion): void {
    const cycles = motion.threads.map(({ cycle }) => cycle);
    if (cycles.some((cycle, at) => cycle < (this.cycles[at] ?? -1))) this.arm.begin();
    if (motion.threads.some(({ flags }) => flags & FLAG.fresh)) this.cycled_ms = performance.now();
    this.cycles = cycles;
    this.arm.motion(motion);
    this.drives.motion(motion);
    this.planner.motion(motion);
    this.messages.motion(motion);
  }

  /** The connection's state, unless the core itself is silent. */
  private link(link: Link): void {
    const age_ms = performance.now() - this.cycled_ms;
    const cycles = (this.hello_?.threads.length ?? 0) > 0;
    const silent = cycles && link.state === "live" && this.status_?.phase === "running" && age_ms > CORE_OLD_MS;
    const before = this.link_.state;
    this.link_ = silent ? { state: "old", age_ms } : link;
    this.showLink();
    if (this.link_.state !== before) this.enable();
  }

  private showLink(): void {
    this.bar.link(this.link_);
  }

  private enable(): void {
    const connected = this.link_.state === "live" || this.link_.state === "old";
    const may_order = connected && token() !== null;
    this.bar.enable(connected, token() !== null && !this.recording, this.status_?.phase ?? "");
    this.flow_node.enable(may_order);
    this.parameters.enable(may_order);
    this.planner.enable(may_order && this.status_?.phase === "running");
    this.domains.status(this.status_?.domains ?? [], may_order);
  }

  /** A token of another run is forgotten, so that the page says where to find the token of this
   * run. */
  private async checkToken(): Promise<void> {
    this.enable();
    if (token() === null) return;
    await this.connection.order({ do: "check" }).catch((error: Error) => {
      if (!error.message.includes("token")) return;
      forget();
      this.enable();
    });
  }

  private async stop(): Promise<void> {
    this.bar.report("■ Stopping …", "stop");
    await this.order({ do: "halt" });
  }

  private async reset(): Promise<void> {
    const since = performance.now();
    if (await this.order({ do: "reset" })) this.bar.report(`The core runs again, after ${time((performance.now() - since) * 1000)}`, "notice");
  }

  private async order(order: Order): Promise<boolean> {
    try {
      await this.connection.order(order);
      return true;
    } catch (error) {
      this.bar.report(`▲ ${order.do}: ${(error as Error).message}`, "old");
      return false;
    }
  }

  private async restart(domain: string): Promise<void> {
    this.domains.said(`restarting ${domain} …`, "good");
    await this.connection.order({ do: "restart", domain }).then(
      (text) => this.domains.said(text, "good"),
      (error: Error) => this.domains.said(error.message, "bad"),
    );
  }

  /** A tab or a panel that nobody sees needs no data. */
  private want(): void {
    const isSeen = (panel: string) => byId(panel).getClientRects().length > 0 && !document.hidden;
    this.connection.view(this.hello_?.camera === true && isSeen("camera"), isSeen("messages"));
    this.scope.seen(isSeen("scope"));
  }

  private recolour(): void {
    for (const panel of [this.arm, this.latency, this.jitter, this.scope]) panel.recolour();
  }
}

/** The address of the WebSocket beside this page. */
function address(): string {
  return `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`;
}

try {
  new Page();
} catch (error) {
  byId("banner").hidden = false;
  setText(byId("banner-says"), `The page could not start: ${(error as Error).message}`);
  throw error;
}
