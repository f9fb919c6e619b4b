// Maps of the digits for values of n_neighbors and min_dist, between which the points move as the reader slides.
"use strict";

const MOVE_MS = 500;

class ParameterMaps {
    constructor(root, data) {
        this.root = root;
        this.data = data;
        this.canvas = root.querySelector("canvas");
        this.inputs = ["neighbors", "dist"].map((name) => root.querySelector(`input[name=${name}]`));
        this.values = [data.nNeighbors, data.minDist];
        this.inputs.forEach((input, a) => {
            input.max = String(this.values[a].length - 1);
            input.addEventListener("input", () => this.choose());
        });
        this.places = this.target();
        this.choose();
        new ResizeObserver(() => this.draw()).observe(this.canvas);
        new MutationObserver(() => this.draw()).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    }

    get chosen() {
        return this.inputs.map((input) => Number(input.value));
    }

    target() {
        const [k, d] = this.chosen;
        const bytes = Uint8Array.from(atob(this.data.maps[k * this.data.minDist.length + d]), (one) => one.charCodeAt(0));
        return Float32Array.from(new Int16Array(bytes.buffer), (step) => step / 32767);
    }

    choose() {
        this.inputs.forEach((input, a) => {
            const value = String(this.values[a][this.chosen[a]]);
            input.labels[0].querySelector("output").textContent = value;
            input.setAttribute("aria-valuetext", value);
        });
        const [from, to, start] = [this.places, this.target(), performance.now()];
        const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
        const run = (this.run = (this.run ?? 0) + 1);
        const step = () => {
            if (run !== this.run) return;
            const share = still ? 1 : Math.min(1, (performance.now() - start) / MOVE_MS);
            const eased = share * share * (3 - 2 * share);
            this.places = share === 1 ? to : from.map((place, a) => place + (to[a] - place) * eased);
            this.draw();
            if (share < 1) requestAnimationFrame(step);
        };
        step();
    }

    draw() {
        const { canvas, places, data } = this;
        const ratio = devicePixelRatio || 1;
        const [width, height] = [canvas.clientWidth, canvas.clientHeight];
        [canvas.width, canvas.height] = [width * ratio, height * ratio];
        const context = canvas.getContext("2d");
        context.scale(ratio, ratio);
        const colors = data.colors[document.documentElement.dataset.theme === "dark" ? "dark" : "light"];
        const scale = (Math.min(width, height) / 2) * 0.94;
        data.labels.forEach((label, row) => {
            context.fillStyle = colors[label];
            context.beginPath();
            context.arc(width / 2 + places[2 * row] * scale, height / 2 - places[2 * row + 1] * scale, 2, 0, 2 * Math.PI);
            context.fill();
        });
    }
}

for (const root of document.querySelectorAll(".parameter-maps")) root.maps = new ParameterMaps(root, window.parameterMaps);
