// Draws points with WebGL 2: one call for all of them, then the found, selected and hovered ones on top.
// Every row has a place, the number of its color and a size level. The rows to draw are an index buffer in random
// order, so that no class covers another only because it comes later in the data, and a part of it is a fair sample.

const VERTEX = `#version 300 es
in vec3 place;
in float code;
in float level;
uniform mat3 turn;
uniform vec2 center;
uniform vec2 extent;
uniform float perspective;
uniform float size;
uniform float levels[3];
uniform sampler2D colors;
uniform vec4 single;
out vec4 color;
flat out float radius;
void main() {
  vec3 turned = turn * place;
  float w = 1.0 - turned.z * perspective;
  gl_Position = vec4((turned.xy - center * w) / extent, -turned.z * 0.3 * w, w);
  float diameter = size * levels[int(level)] / (perspective > 0.0 ? w : 1.0);
  radius = diameter / 2.0;
  // half a pixel on each side for the smooth edge
  gl_PointSize = diameter + 1.0;
  int at = int(code);
  color = single.a > 0.0 ? single : texelFetch(colors, ivec2(at % 256, at / 256), 0);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec4 color;
flat in float radius;
uniform float opacity;
uniform float ring;
uniform bool solid;
out vec4 painted;
void main() {
  float from = length(gl_PointCoord - 0.5) * (2.0 * radius + 1.0);
  float cover = clamp(radius - from + 0.5, 0.0, 1.0);
  if (ring > 0.0) cover *= clamp(from - radius + ring + 0.5, 0.0, 1.0);
  if (solid && cover < 0.5) discard;
  float alpha = cover * opacity * color.a;
  painted = vec4(color.rgb * alpha, alpha);
}`;

const SHUFFLE_SEED = 12345;

export interface Camera {
  /** Rotation, column by column. */
  turn: Float32Array;
  center: [number, number];
  /** Half of the visible height. */
  distance: number;
  perspective: number;
}

export interface Layer {
  rows: "shown" | "found" | "selected" | "hovered";
  /** Diameter of a point in device pixels. */
  size: number;
  opacity: number;
  /** One color for all points instead of their own. */
  single?: string;
  /** Width of a ring in device pixels, instead of a disc. */
  ring?: number;
  /** Draws only this many points. */
  limit?: number;
}

export class Renderer {
  private readonly gl: WebGL2RenderingContext;
  private program!: WebGLProgram;
  private places!: WebGLBuffer;
  private codes!: WebGLBuffer;
  private levels!: WebGLBuffer;
  private colors!: WebGLTexture;
  private readonly indices = new Map<Layer["rows"], { buffer: WebGLBuffer; n: number }>();
  private readonly uniforms = new Map<string, WebGLUniformLocation | null>();
  private order = new Uint32Array(0);
  private deep = false;

  constructor(readonly canvas: HTMLCanvasElement) {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: false, powerPreference: "high-performance" });
    if (!gl) throw new Error("this browser has no WebGL 2, which draws the points; allow hardware acceleration in its settings or use another browser");
    this.gl = gl;
    this.begin();
  }

  /** Creates everything that lives on the graphics card; again after its loss. */
  begin(): void {
    const { gl } = this;
    this.indices.clear();
    this.uniforms.clear();
    this.program = linked(gl);
    this.places = gl.createBuffer();
    this.codes = gl.createBuffer();
    this.levels = gl.createBuffer();
    this.colors = gl.createTexture();
    gl.useProgram(this.program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  setPlaces(x: Float32Array, y: Float32Array, z: Float32Array | null): void {
    const n = x.length;
    const joined = new Float32Array(3 * n);
    for (let row = 0; row < n; row++) {
      joined[3 * row] = x[row]!;
      joined[3 * row + 1] = y[row]!;
      if (z) joined[3 * row + 2] = z[row]!;
    }
    this.deep = z !== null;
    this.fill("place", this.places, joined, 3, this.gl.FLOAT);
    if (this.order.length !== n) this.order = shuffled(n);
  }

  setCodes(codes: Uint8Array | Uint16Array): void {
    this.fill("code", this.codes, codes, 1, codes instanceof Uint8Array ? this.gl.UNSIGNED_BYTE : this.gl.UNSIGNED_SHORT);
  }

  setLevels(levels: Uint8Array): void {
    this.fill("level", this.levels, levels, 1, this.gl.UNSIGNED_BYTE);
  }

  setColors(colors: string[]): void {
    const { gl } = this;
    const height = Math.max(1, Math.ceil(colors.length / 256));
    const bytes = new Uint8Array(256 * height * 4);
    colors.forEach((color, a) => bytes.set([...rgb(color).map((part) => Math.round(part * 255)), 255], 4 * a));
    gl.bindTexture(gl.TEXTURE_2D, this.colors);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  }

  /** Sets the rows that are drawn: those for which `visible` is true. */
  setShown(visible: ((row: number) => boolean) | null): void {
    this.index("shown", visible ? this.order.filter(visible) : this.order);
  }

  setRows(rows: "found" | "selected" | "hovered", list: number[]): void {
    this.index(rows, Uint32Array.from(list));
  }

  count(rows: Layer["rows"]): number {
    return this.indices.get(rows)?.n ?? 0;
  }

  draw(camera: Camera, background: string, layers: Layer[]): void {
    const { gl, canvas } = this;
    gl.viewport(0, 0, canvas.width, canvas.height);
    const [red, green, blue] = rgb(background);
    gl.clearColor(red, green, blue, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.uniformMatrix3fv(this.uniform("turn"), false, camera.turn);
    gl.uniform2f(this.uniform("center"), ...camera.center);
    gl.uniform2f(this.uniform("extent"), (camera.distance * canvas.width) / canvas.height, camera.distance);
    gl.uniform1f(this.uniform("perspective"), camera.perspective);
    gl.uniform1fv(this.uniform("levels"), [1, 1.4, 2.2]);
    for (const layer of layers) this.drawLayer(layer);
  }

  private drawLayer({ rows, size, opacity, single, ring, limit }: Layer): void {
    const { gl } = this;
    const index = this.indices.get(rows);
    if (!index?.n) return;
    // points in space hide those behind them; marks are drawn over everything
    const solid = this.deep && rows === "shown";
    if (solid) gl.enable(gl.DEPTH_TEST);
    else gl.disable(gl.DEPTH_TEST);
    gl.uniform1i(this.uniform("solid"), Number(solid));
    gl.uniform1f(this.uniform("size"), size);
    gl.uniform1f(this.uniform("opacity"), solid ? Math.max(opacity, 0.9) : opacity);
    gl.uniform1f(this.uniform("ring"), ring ?? 0);
    gl.uniform4fv(this.uniform("single"), single ? [...rgb(single), 1] : [0, 0, 0, 0]);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, index.buffer);
    gl.drawElements(gl.POINTS, Math.min(index.n, limit ?? index.n), gl.UNSIGNED_INT, 0);
  }

  private index(rows: Layer["rows"], list: Uint32Array): void {
    const { gl } = this;
    const known = this.indices.get(rows) ?? { buffer: gl.createBuffer(), n: 0 };
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, known.buffer);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, list, gl.DYNAMIC_DRAW);
    this.indices.set(rows, { ...known, n: list.length });
  }

  private fill(name: string, buffer: WebGLBuffer, content: ArrayBufferView, parts: number, type: number): void {
    const { gl } = this;
    const at = gl.getAttribLocation(this.program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, content, gl.DYNAMIC_DRAW);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, parts, type, false, 0, 0);
  }

  private uniform(name: string): WebGLUniformLocation | null {
    if (!this.uniforms.has(name)) this.uniforms.set(name, this.gl.getUniformLocation(this.program, name));
    return this.uniforms.get(name)!;
  }
}

export function rgb(color: string): [number, number, number] {
  return [1, 3, 5].map((from) => parseInt(color.slice(from, from + 2), 16) / 255) as [number, number, number];
}

function linked(gl: WebGL2RenderingContext): WebGLProgram {
  const program = gl.createProgram();
  for (const [kind, source] of [
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ] as const) {
    const shader = gl.createShader(kind)!;
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(`the points cannot be drawn here: ${gl.getShaderInfoLog(shader) ?? ""}`);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(`the points cannot be drawn here: ${gl.getProgramInfoLog(program) ?? ""}`);
  return program;
}

/** Returns the row numbers in an order that looks random but is always the same. */
function shuffled(n: number): Uint32Array<ArrayBuffer> {
  const order = Uint32Array.from({ length: n }, (_, row) => row);
  let state = SHUFFLE_SEED;
  for (let a = n - 1; a > 0; a--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const b = Math.floor((state / 2 ** 32) * (a + 1));
    [order[a], order[b]] = [order[b]!, order[a]!];
  }
  return order;
}
