// The WebAssembly module: its memory, the functions of WASI that it imports, and failures as exceptions.

/** The functions of cpp/wasm/interface.hpp; pointers and counts are numbers. */
type Exports = Record<string, (...args: number[]) => number> & { memory: WebAssembly.Memory };
type Numbers = Float32Array | Float64Array | Int32Array | BigUint64Array;

/** What the module can be made of: its bytes, a response that brings them, or a compiled module. */
export type Source = BufferSource | Response | Promise<Response> | WebAssembly.Module;

/** The compiled core. All work is done by one thread, in the thread that calls. */
export class Core {
  private printed = "";

  private constructor(private readonly exports: Exports) {}

  static async load(source: Source): Promise<Core> {
    const core: { of?: Core } = {};
    const imports = { wasi_snapshot_preview1: wasi(() => core.of!), env: { emscripten_notify_memory_growth: () => {} } };
    const given = source instanceof Promise ? await source : source;
    const instance =
      given instanceof WebAssembly.Module
        ? await WebAssembly.instantiate(given, imports)
        : (await WebAssembly.instantiate(await bytesOf(given), imports)).instance;
    core.of = new Core(instance.exports as Exports);
    core.of.exports["_initialize"]!();
    return core.of;
  }

  /** Calls a function that returns a pointer or whether it succeeded; a failure becomes an Error. */
  call(name: string, ...args: number[]): number {
    let result: number;
    try {
      result = this.exports[`vicinal_${name}`]!(...args);
    } catch (error) {
      throw new Error(`vicinal: ${name} failed (${error instanceof Error ? error.message : String(error)})`);
    }
    if (!result) throw new Error(`vicinal: ${this.text(this.exports["vicinal_error"]!())}`);
    return result >>> 0;
  }

  /** Calls a function that cannot fail. */
  run(name: string, ...args: number[]): number {
    return this.exports[`vicinal_${name}`]!(...args);
  }

  /** Calls `f` with memory that is released afterwards. */
  scope<T>(f: (memory: Memory) => T): T {
    const memory = new Memory(this);
    try {
      return f(memory);
    } finally {
      memory.release();
    }
  }

  /** The digests of the golden maps by name. */
  golden(): Record<string, string> {
    this.printed = "";
    this.call("golden");
    const lines = this.printed.split("\n").filter((line) => line);
    return Object.fromEntries(lines.map((line) => line.split(": ") as [string, string]));
  }

  get bytes(): number {
    return this.exports.memory.buffer.byteLength;
  }

  get buffer(): ArrayBuffer {
    return this.exports.memory.buffer;
  }

  print(text: string): void {
    this.printed += text;
  }

  private text(at: number): string {
    const bytes = new Uint8Array(this.buffer, at >>> 0);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }
}

/** The seed of options: that of the parts, or the one that the estimators draw from `randomState`. */
export function seedOf(core: Core, { seed, randomState }: { seed?: number; randomState: number }): number {
  return seed ?? core.run("seed", randomState);
}

/** Arrays in the module's memory. Views are made after each call, because a call may move the memory. */
export class Memory {
  private readonly held: number[] = [];

  constructor(private readonly core: Core) {}

  room(bytes: number): number {
    const at = this.core.run("allocate", Math.max(bytes, 1)) >>> 0;
    if (!at) throw new Error(`vicinal: out of memory, ${bytes} bytes are not to be had`);
    this.held.push(at);
    return at;
  }

  put(values: Numbers): number {
    const at = this.room(values.byteLength);
    new Uint8Array(this.core.buffer, at, values.byteLength).set(
      new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
    );
    return at;
  }

  text(value: string): number {
    const bytes = new TextEncoder().encode(`${value}\0`);
    const at = this.room(bytes.length);
    new Uint8Array(this.core.buffer, at, bytes.length).set(bytes);
    return at;
  }

  floats(at: number, n: number): Float32Array {
    return new Float32Array(this.core.buffer, at, n).slice();
  }

  doubles(at: number, n: number): Float64Array {
    return new Float64Array(this.core.buffer, at, n).slice();
  }

  integers(at: number, n: number): Int32Array {
    return new Int32Array(this.core.buffer, at, n).slice();
  }

  release(): void {
    for (const at of this.held.splice(0)) this.core.run("release", at);
  }
}

async function bytesOf(source: BufferSource | Response): Promise<BufferSource> {
  return "arrayBuffer" in source ? source.arrayBuffer() : source;
}

/** The functions of WASI that the standard library imports: text output, the time, no environment. */
function wasi(core: () => Core): Record<string, (...args: never[]) => number> {
  const words = () => new DataView(core().buffer);
  return {
    fd_write: (_file: number, vectors: number, count: number, written: number) => {
      let total = 0;
      for (let v = 0; v < count; ++v) {
        const at = words().getUint32(vectors + 8 * v, true), length = words().getUint32(vectors + 8 * v + 4, true);
        core().print(new TextDecoder().decode(new Uint8Array(core().buffer, at, length).slice()));
        total += length;
      }
      words().setUint32(written, total, true);
      return 0;
    },
    clock_time_get: (_clock: number, ...rest: number[]) => {
      words().setBigUint64(rest[rest.length - 1]!, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    },
    environ_sizes_get: (count: number, bytes: number) => {
      words().setUint32(count, 0, true);
      words().setUint32(bytes, 0, true);
      return 0;
    },
    environ_get: () => 0,
    proc_exit: (code: number) => {
      throw new Error(`the core ended with status ${code}`);
    },
  };
}
