// Algorithm 1 of the survey on a small graph, with forces that the reader changes while it runs.
"use strict";

class LiveLayout {
    constructor(data) {
        this.data = data;
        this.n = data.start.length;
        this.settings = { negatives: 5, gamma: 1, exaggeration: 1, moving: false };
        this.degree = new Float64Array(this.n);
        data.heads.forEach((head, e) => {
            this.degree[head] += data.weights[e];
            this.degree[data.tails[e]] += data.weights[e];
        });
        this.restart();
    }

    restart() {
        this.y = Float64Array.from(this.data.start.flat());
        this.reheat(1);
        this.epoch = 0;
    }

    // The learning rate falls from here to a small constant, so that the map keeps answering to the sliders.
    reheat(rate) {
        this.rate = rate;
    }

    runEpoch() {
        const { heads, tails, weights } = this.data;
        for (let e = 0; e < heads.length; e++) {
            // Algorithm 1 visits (i, j) and (j, i).
            if (Math.random() <= weights[e]) this.fire(heads[e], tails[e]);
            if (Math.random() <= weights[e]) this.fire(tails[e], heads[e]);
        }
        this.rate = Math.max(0.03, this.rate * 0.985);
        this.epoch++;
    }

    fire(i, j) {
        const { a, b } = this.data, { negatives, gamma, exaggeration, moving } = this.settings;
        const y = this.y, rate = this.rate;
        const clip = (value) => Math.max(-4, Math.min(4, value));
        let dx = y[2 * i] - y[2 * j], dy = y[2 * i + 1] - y[2 * j + 1], d2 = dx * dx + dy * dy;
        if (d2 > 0) {
            const pull = (exaggeration * 2 * a * b * Math.pow(d2, b - 1)) / (1 + a * Math.pow(d2, b));
            const sx = rate * clip(pull * dx), sy = rate * clip(pull * dy);
            y[2 * i] -= sx;
            y[2 * i + 1] -= sy;
            y[2 * j] += sx;
            y[2 * j + 1] += sy;
        }
        for (let s = 0; s < negatives; s++) {
            const l = Math.floor(Math.random() * this.n);
            if (l === i) continue;
            dx = y[2 * i] - y[2 * l];
            dy = y[2 * i + 1] - y[2 * l + 1];
            d2 = dx * dx + dy * dy;
            const push = (gamma * 2 * b) / ((0.001 + d2) * (1 + a * Math.pow(d2, b)));
            const sx = rate * clip(push * dx), sy = rate * clip(push * dy);
            y[2 * i] += sx;
            y[2 * i + 1] += sy;
            if (moving) {
                y[2 * l] -= sx;
                y[2 * l + 1] -= sy;
            }
        }
    }

    // Attraction A = sum of p c^a over the edges, repulsion R = (m/n) sum of d_i c^r over all pairs, and the radius.
    measure() {
        const { heads, tails, weights, a, b } = this.data, y = this.y;
        let attraction = 0, repulsion = 0, x0 = 0, y0 = 0, radius = 0;
        const kernel = (i, j) => {
            const d2 = (y[2 * i] - y[2 * j]) ** 2 + (y[2 * i + 1] - y[2 * j + 1]) ** 2;
            return a * Math.pow(Math.max(d2, 1e-12), b);
        };
        heads.forEach((head, e) => (attraction += 2 * weights[e] * Math.log1p(kernel(head, tails[e]))));
        for (let i = 0; i < this.n; i++) {
            x0 += y[2 * i] / this.n;
            y0 += y[2 * i + 1] / this.n;
            for (let j = 0; j < i; j++) {
                const t = kernel(i, j);
                repulsion += (this.degree[i] + this.degree[j]) * (Math.log1p(t) - Math.log(t));
            }
        }
        for (let i = 0; i < this.n; i++) radius += ((y[2 * i] - x0) ** 2 + (y[2 * i + 1] - y0) ** 2) / this.n;
        return { attraction, repulsion: repulsion / this.n, radius: Math.sqrt(radius) };
    }
}

function drawLayout(canvas, layout) {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
        canvas.width = width * ratio;
        canvas.height = height * ratio;
    }
    const context = canvas.getContext("2d"), y = layout.y;
    let left = Infinity, right = -Infinity, bottom = Infinity, top = -Infinity;
    for (let i = 0; i < layout.n; i++) {
        left = Math.min(left, y[2 * i]);
        right = Math.max(right, y[2 * i]);
        bottom = Math.min(bottom, y[2 * i + 1]);
        top = Math.max(top, y[2 * i + 1]);
    }
    const scale = 0.92 * Math.min(width / (right - left || 1), height / (top - bottom || 1));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    for (let i = 0; i < layout.n; i++) {
        context.fillStyle = layout.data.colors[layout.data.labels[i]];
        context.beginPath();
        const px = width / 2 + scale * (y[2 * i] - (left + right) / 2);
        const py = height / 2 - scale * (y[2 * i + 1] - (bottom + top) / 2);
        context.arc(px, py, 3, 0, 2 * Math.PI);
        context.fill();
    }
}

function startSliders(root) {
    const layout = new LiveLayout(window.digitsGraph);
    const canvas = root.querySelector("canvas"), status = root.querySelector(".status");
    const pause = root.querySelector("button[name=pause]");
    let running = true;
    for (const input of root.querySelectorAll("input")) {
        const show = () => {
            const value = input.type === "checkbox" ? input.checked : Number(input.value);
            layout.settings[input.name] = value;
            const output = root.querySelector(`output[for=${input.id}]`);
            if (output) output.textContent = String(value);
        };
        show();
        input.addEventListener("input", () => {
            show();
            layout.reheat(Math.max(layout.rate, 0.3));
        });
    }
    pause.addEventListener("click", () => {
        running = !running;
        pause.textContent = running ? "Pause" : "Run";
    });
    root.querySelector("button[name=restart]").addEventListener("click", () => layout.restart());
    const tell = () => {
        const { attraction, repulsion, radius } = layout.measure();
        const { negatives, gamma } = layout.settings;
        status.textContent =
            `epoch ${layout.epoch} · attraction A ${attraction.toFixed(0)} · ` +
            `repulsion of one negative ${repulsion.toFixed(0)} · ` +
            `J = A + m γ R / 2 = ${(attraction + (negatives * gamma * repulsion) / 2).toFixed(0)} · ` +
            `radius ${radius.toFixed(1)}`;
    };
    const frame = () => {
        if (running) {
            layout.runEpoch();
            if (layout.epoch % 15 === 0) tell();
        }
        drawLayout(canvas, layout);
        window.requestAnimationFrame(frame);
    };
    tell();
    frame();
    root.layout = layout;
}

document.addEventListener("DOMContentLoaded", () => {
    for (const root of document.querySelectorAll(".slider-map")) startSliders(root);
});
