// The worker: answers requests one after the other. Long layouts are run in short pieces, so that a request to cancel is
// heard between them.

import { type FittedMap, type OnProgress, Vicinal } from "./map";
import type { Layout } from "./layout";
import type { Answer, Asked, FitResult, LayoutResult, RunResult } from "./protocol";

const PIECE_MS = 40; // between two looks for messages

type Send = (answer: Answer, moved?: Transferable[]) => void;

/** Returns the function that handles the messages of a page; `send` brings the answers. */
export function serve(send: Send): (asked: Asked) => Promise<void> {
  let vicinal: Vicinal | undefined;
  let objects = 0;
  const held = new Map<number, FittedMap | Layout>();
  const cancelled = new Set<number>();

  const core = (): Vicinal => {
    if (!vicinal) throw new Error("the module has not been loaded");
    return vicinal;
  };
  const keep = (object: FittedMap | Layout): number => {
    held.set(++objects, object);
    return objects;
  };
  const layoutOf = (number: number): Layout => {
    const layout = held.get(number);
    if (!layout || !("step" in layout)) throw new Error("the layout has been freed");
    return layout;
  };

  /** Steps a layout, and lets messages in between. */
  async function run(layout: Layout, epochs: number, call: number, every: number, lookAt: boolean): Promise<RunResult> {
    const last = Math.min(layout.nEpochs, layout.epoch + epochs);
    let told = performance.now(), pace = 1;
    while (layout.epoch < last && !cancelled.has(call)) {
      const begin = performance.now();
      layout.step(Math.min(pace, last - layout.epoch));
      const now = performance.now();
      pace = Math.max(1, Math.min(2 * pace, Math.floor((pace * PIECE_MS) / Math.max(now - begin, 0.01))));
      if (now - told >= every || layout.epoch >= last) {
        told = now;
        const embedding = lookAt ? layout.embedding() : undefined;
        const progress = { stage: "layout" as const, epoch: layout.epoch, nEpochs: layout.nEpochs };
        send({ call, progress: embedding ? { ...progress, embedding } : progress }, embedding ? [embedding.buffer] : []);
      }
      await messages();
    }
    return { epoch: layout.epoch, finished: layout.epoch >= layout.nEpochs, embedding: layout.embedding() };
  }

  async function answer(asked: Asked): Promise<unknown> {
    switch (asked.does) {
      case "load":
        vicinal = await Vicinal.load(asked.source);
        return true;
      case "golden":
        return core().golden();
      case "neighbors":
        return core().neighbors(asked.rows, asked.options);
      case "graph":
        return core().graph(asked.neighbors, asked.options);
      case "start":
        return core().start(asked.graph, asked.options, asked.rows);
      case "fit":
        return fitted(asked);
      case "adopt": {
        const map = core().adopt(asked.rows, asked.neighbors, asked.embedding, asked.options);
        return { map: keep(map), ...described(map) } satisfies FitResult;
      }
      case "layout": {
        const layout = core().layout(asked.graph, asked.start, asked.options, asked.neighbors);
        return { layout: keep(layout), nEpochs: layout.nEpochs } satisfies LayoutResult;
      }
      case "run":
        return run(layoutOf(asked.layout), asked.epochs, asked.call, asked.every, asked.lookAt);
      case "embedding":
        return layoutOf(asked.layout).embedding();
      case "transform": {
        const map = held.get(asked.map);
        if (!map || !("transform" in map)) throw new Error("the map has been freed");
        return map.transform(asked.rows);
      }
      case "free":
        held.get(asked.object)?.free();
        held.delete(asked.object);
        return true;
      case "cancel":
        cancelled.add(asked.call);
        return true;
    }
  }

  async function fitted(asked: Asked & { does: "fit" }): Promise<FitResult> {
    const tell: OnProgress = (stage, epoch, nEpochs) => send({ call: asked.call, progress: { stage, epoch, nEpochs } });
    const steps = core().steps(asked.rows, asked.options, tell);
    try {
      await run(steps.layout, steps.layout.nEpochs, asked.call, asked.every, asked.lookAt);
      if (cancelled.has(asked.call)) throw Object.assign(new Error("the fit was cancelled"), { name: "AbortError" });
    } catch (error) {
      steps.abandon();
      throw error;
    }
    const map = steps.finish();
    return { map: keep(map), ...described(map) };
  }

  return async (asked) => {
    if (asked.does === "cancel") {
      cancelled.add(asked.call);
      return;
    }
    try {
      send({ call: asked.call, result: await answer(asked) });
    } catch (error) {
      const { name, message } = error instanceof Error ? error : new Error(String(error));
      send({ call: asked.call, error: { name, message } });
    } finally {
      cancelled.delete(asked.call);
    }
  };
}

function described({ n, nComponents, embedding, graph, neighbors, isolated }: FittedMap): Omit<FitResult, "map"> {
  return { n, nComponents, embedding, graph, neighbors, isolated };
}

/** Resolves after the messages that wait have been heard. Unlike a timer, a message is not delayed. */
function messages(): Promise<void> {
  return new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      done();
    };
    port2.postMessage(0);
  });
}

declare const self: { onmessage: unknown; postMessage(message: unknown, moved: Transferable[]): void };

// The main program of a worker. Requests wait for each other, except those to cancel.
let before = Promise.resolve();
const handle = serve((answer, moved = []) => self.postMessage(answer, moved));
self.onmessage = ({ data }: { data: Asked }) => {
  if (data.does === "cancel") void handle(data);
  else before = before.then(() => handle(data));
};
