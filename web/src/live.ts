// The live part of the page: positions that arrive over a websocket, and the controls of the fit that sends them.
import type { App } from "./app";
import type { Live, NewRows, Parameter, Places } from "./data";
import { count, download, el, icon } from "./element";
import { centered, Decoder, type Frame } from "./frames";
import { heading } from "./legend";
import { turnOnto } from "./turning";

const STAGES: Record<string, string> = {
  starting: "Starting",
  neighbors: "Finding neighbors",
  graph: "Building the graph",
  initialize: "Initializing",
  layout: "Optimizing the layout",
  train: "Training",
};
const FIRST_RETRY_MS = 300;
const LAST_RETRY_MS = 5000;
// Names, sizes and the camera are updated at every frame; on large maps at every eighth.
const SMALL = 50_000;
const SETTLE_FRAMES = 8;
// The last rows are highlighted until others arrive, or for at most this long.
const NEW_MS = 3000;

interface Status {
  state: "waiting" | "running" | "paused" | "done" | "failed";
  stage: string;
  epoch: number;
  n_epochs: number;
  message: string;
  growth: Growth | null;
}

/** Progress of a growing map. */
interface Growth {
  rows: number;
  total: number | null;
  placed: number;
  pending: number;
  coverage: number;
  trustworthiness: number | null;
}

export class Feed {
  frames = 0;
  /** The final positions, exactly those of the estimator. */
  exact: Frame | null = null;
  status: Status = { state: "waiting", stage: "", epoch: 0, n_epochs: 0, message: "", growth: null };
  private socket: WebSocket | null = null;
  private readonly unsaid: object[] = [];
  private retry = FIRST_RETRY_MS;
  private touched = false;
  private queue = Promise.resolve();
  /** The run of the last frame, and the last positions of the run before. */
  private run: number | null = null;
  private before: Places | null = null;
  private readonly questions = new Map<number, ((rows: number[]) => void)[]>();
  /** When rows arrived, and the first of them. */
  private arrivals: { row: number; at: number }[] = [];
  private grown = false;
  private readonly parts = { title: el("strong"), bar: el("progress", { max: 1 }), note: el("p", { className: "hint" }), facts: el("dl", { className: "facts", hidden: true }), pause: el("button"), again: el("button", { textContent: "Run again" }) };

  constructor(private readonly page: App, private readonly live: Live) {
    this.build();
    this.connect();
    for (const event of ["wheel", "pointerdown", "keydown"]) page.dom.get("map").addEventListener(event, () => (this.touched = true), { passive: true });
    page.state.listen("selected", () => this.say({ type: "select", rows: page.state.selected }));
  }

  private connect(): void {
    const address = new URL(this.live.feed, location.href);
    address.protocol = "ws:";
    const socket = new WebSocket(address);
    // changes are relative to the frames of the same connection
    const decoder = new Decoder();
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.retry = FIRST_RETRY_MS;
      for (const what of this.unsaid.splice(0)) this.say(what);
    };
    socket.onmessage = ({ data }) => {
      if (typeof data === "string") {
        const message = JSON.parse(data) as { type: string };
        if (message.type === "neighbors") return this.answer(message as unknown as { row: number; rows: number[] });
        return this.told(message as unknown as Status);
      }
      // frames are drawn one after the other; the server sends the next one when this one is confirmed
      const drawn = this.queue.then(() => (this.socket === socket ? this.draw(data as ArrayBuffer, decoder) : undefined));
      this.queue = drawn.catch(() => socket.close());
    };
    socket.onclose = () => {
      this.parts.note.textContent = "Connection lost; reconnecting";
      setTimeout(() => this.connect(), this.retry);
      this.retry = Math.min(LAST_RETRY_MS, this.retry * 2);
    };
    this.socket = socket;
  }

  /** Drops the connection, as a network failure would; the page reconnects. */
  drop(): void {
    this.socket?.close();
  }

  /** Sends a message; without a connection it is sent after the next reconnection. */
  private say(what: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(what));
    else this.unsaid.push(what);
  }

  private async draw(message: ArrayBuffer, decoder: Decoder): Promise<void> {
    const { state, view, names, card } = this.page;
    const frame = await decoder.decode(message);
    if ("begin" in frame) return this.take(frame);
    if (frame.x.length !== state.data.n) return location.reload();
    await this.place(frame);
    this.frames++;
    this.exact = state.data.exact = frame.exact ? frame : null;
    this.offerNeighbors();
    this.page.dom.get("busy").hidden = true;
    if (view.fresh) view.fresh = this.freshness(frame.exact);
    if (this.grown || view.fresh || this.frames === 1) view.redraw();
    else view.moved();
    this.grown = false;
    // the next frame is asked for when this one has been drawn
    await new Promise((drawn) => requestAnimationFrame(drawn));
    card.place();
    if (frame.exact || state.data.n <= SMALL || this.frames % SETTLE_FRAMES === 1) {
      view.settle();
      names.locate();
      this.page.panes[0]!.density.outdated();
      // the extent of a growing map changes; the camera stays if the reader has moved it
      if (!this.touched) void view.fit(false);
    }
    if (this.socket?.readyState === WebSocket.OPEN) this.say({ type: "drawn" });
  }

  /** Puts positions on the map; those of a new run are turned onto the last ones of the run before. */
  private async place(frame: Frame): Promise<void> {
    const { view, state } = this.page;
    const into = state.data.maps[0]!;
    const begins = this.run !== null && frame.run !== this.run;
    if (begins) this.before = this.frames ? copied(into) : null;
    this.run = frame.run;
    const from = begins ? this.before : null;
    centered(frame, into);
    const axes = ({ x, y, z }: Places) => (z ? [x, y, z] : [x, y]);
    if (this.before?.x.length === into.x.length) turnOnto(axes(into), axes(this.before));
    if (from?.x.length === into.x.length && view.places === into) {
      await view.morph(from, copied(into));
      view.places = into;
    }
  }

  /** Asks the server for the neighbors of a point, which it has when a fit has ended. */
  private offerNeighbors(): void {
    const { state } = this.page;
    const possible = this.exact !== null && this.live.neighbors;
    if (possible === (state.data.neighbors !== null)) return;
    state.data.neighbors = possible ? (row) => this.ask(row) : null;
    this.page.updateTools();
  }

  private ask(row: number): Promise<number[]> {
    this.say({ type: "neighbors", row });
    return new Promise((answer) => this.questions.set(row, [...(this.questions.get(row) ?? []), answer]));
  }

  private answer({ row, rows }: { row: number; rows: number[] }): void {
    for (const answer of this.questions.get(row) ?? []) answer(rows);
    this.questions.delete(row);
  }

  /** Takes the data of rows whose positions arrive with the next frame. */
  private take(rows: NewRows): void {
    const { state, view } = this.page;
    const before = state.data.n;
    state.data.takeRows(rows);
    // places come with the next frame: nothing is drawn before it
    view.fresh = new Uint8Array(state.data.n);
    state.takeRows();
    this.grown = true;
    // a new run starts over; rows present when the page opens are not highlighted
    if (state.data.n < before) this.arrivals = [];
    else if (before > 0) this.arrivals.push({ row: before, at: performance.now() });
  }

  /** Highlights the last rows most and those before them less; ends after a while without new rows. */
  private freshness(still: boolean): Uint8Array {
    const fresh = new Uint8Array(this.page.state.data.n);
    this.arrivals = still ? [] : this.arrivals.slice(-2);
    const last = this.arrivals.at(-1);
    if (!last || performance.now() - last.at > NEW_MS) return fresh;
    if (this.arrivals.length === 2) fresh.fill(1, this.arrivals[0]!.row);
    return fresh.fill(2, last.row);
  }

  private build(): void {
    const section = this.page.dom.get("live");
    section.hidden = false;
    this.parts.pause.onclick = () => this.say({ type: this.status.state === "paused" ? "resume" : "pause" });
    const inputs = this.live.parameters.map((one) => el("label", {}, el("span", { textContent: one.name.replaceAll("_", " ") }), field(one)));
    this.parts.again.onclick = () => {
      const parameters: Record<string, number | string> = {};
      for (const input of section.querySelectorAll<HTMLInputElement>("input[type=number]")) parameters[input.name] = input.valueAsNumber;
      for (const choice of section.querySelectorAll("select")) parameters[choice.name] = choice.value;
      this.say({ type: "rerun", parameters });
    };
    const actions = el("div", { className: "actions" }, this.parts.pause, this.parts.again);
    if (this.live.projects) actions.append(this.upload());
    if (this.live.saves) actions.append(this.saver("map", "Save map", "map.csv"), this.saver("model", "Save model", "map.vicinal"));
    section.append(heading("Layout"), el("div", { className: "stage" }, this.parts.title, this.parts.bar, this.parts.note, this.parts.facts), el("div", { className: "parameters" }, ...inputs), actions);
    if (this.live.parameters.length === 0) this.parts.again.hidden = true;
  }

  /** Creates a button that downloads the finished map or its model. */
  private saver(what: string, text: string, name: string): HTMLElement {
    const button = el("button", { textContent: text, id: `save-${what}` });
    button.onclick = async () => {
      const answer = await fetch(what);
      if (answer.ok) download(name, await answer.blob());
      else this.parts.note.textContent = ((await answer.json()) as { error: string }).error;
    };
    return button;
  }

  private upload(): HTMLElement {
    const file = el("input", { type: "file", id: "upload", hidden: true });
    const button = el("button", { textContent: "Project…", title: "Place the rows of a file on this map", id: "project" });
    button.onclick = () => file.click();
    file.onchange = async () => {
      const chosen = file.files?.[0];
      if (!chosen) return;
      this.parts.note.textContent = `Placing ${chosen.name}`;
      const answer = await fetch(`project?name=${encodeURIComponent(chosen.name)}`, { method: "POST", body: chosen });
      const said = (await answer.json()) as { error?: string };
      if (said.error) this.parts.note.textContent = said.error;
      else location.reload();
    };
    return el("span", {}, file, button);
  }

  private told(status: Status): void {
    this.status = status;
    const { title, bar, note, facts, pause } = this.parts;
    const running = status.state === "running" || status.state === "paused";
    const { done, note: said, stage } = status.growth ? grown(status.growth) : laidOut(status);
    title.textContent = running ? (status.state === "paused" ? "Paused" : stage) : { done: status.stage || "Done", failed: "Failed", waiting: "Waiting" }[status.state as "done"];
    this.page.dom.get("busy-text").textContent = title.textContent!;
    note.textContent = status.message || (running || !status.growth ? said : "");
    facts.hidden = !status.growth;
    if (status.growth) facts.replaceChildren(...counted(status.growth));
    bar.hidden = !running;
    if (done === null) bar.removeAttribute("value");
    else bar.value = done;
    pause.hidden = !running;
    pause.replaceChildren(icon(status.state === "paused" ? "play" : "pause"), status.state === "paused" ? "Resume" : "Pause");
  }
}

function copied({ name, x, y, z }: Places): Places {
  return { name, x: x.slice(), y: y.slice(), z: z?.slice() ?? null };
}

interface Progress {
  stage: string;
  done: number | null;
  note: string;
}

function laidOut({ stage, epoch, n_epochs }: Status): Progress {
  const known = n_epochs > 1;
  return { stage: STAGES[stage] ?? stage, done: known ? epoch / n_epochs : null, note: known ? `Epoch ${count(epoch)} of ${count(n_epochs)}` : "" };
}

function grown({ rows, total, placed }: Growth): Progress {
  const arriving = total === null || rows < total;
  return {
    stage: arriving ? "Rows are arriving" : "Settling the map",
    done: total === null ? null : placed / total,
    note: arriving ? "Larger points are the newest." : "",
  };
}

function counted({ rows, total, placed, pending, coverage, trustworthiness }: Growth): HTMLElement[] {
  const facts: [string, string, string][] = [
    ["read", total === null ? count(rows) : `${count(rows)} of ${count(total)}`, "Rows read from the file"],
    ["placed", count(placed), "Rows placed on the map"],
    ["pending", count(pending), "Rows that wait for neighbors or still move"],
    ["coverage", `${(100 * coverage).toFixed(1)} %`, "Rows whose neighbors are known and up to date"],
    ["trustworthiness", trustworthiness === null ? "–" : trustworthiness.toFixed(3), "Whether neighbors in the map are neighbors in the data, on a sample of the rows so far"],
  ];
  return facts.flatMap(([name, value, title]) => [el("dt", { textContent: name, title }), el("dd", { textContent: value })]);
}

/** Creates the input of a parameter: a number, or one of several choices. */
function field(one: Parameter): HTMLElement {
  if ("choices" in one) {
    const select = el("select", { name: one.name });
    select.append(...one.choices.map((choice) => el("option", { value: choice, textContent: choice, selected: choice === one.value })));
    return select;
  }
  return el("input", { type: "number", name: one.name, value: String(one.value), min: String(one.low), max: String(one.high), step: String(one.step) });
}
