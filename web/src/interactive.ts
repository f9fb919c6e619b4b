// A page that can lay out again: it carries the compiled core and the neighbor table.
import "./map.css";
import "./panel.css";
import "./relayout.css";

import { documentSource } from "./data";
import { openPage } from "./open";
import { Relayout } from "./relayout";

void openPage().then(async (app) => {
  const relayout = await Relayout.of(app, documentSource());
  Object.assign((window as unknown as { vicinalPage: object }).vicinalPage, { relayout });
  document.documentElement.dataset["layout"] = "ready";
});
