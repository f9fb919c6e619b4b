// The page in a document of its own, with its data in the document and its view in the address.
import "./map.css";
import "./panel.css";

import { bindAddress } from "./address";
import { mount } from "./app";
import { documentSource } from "./data";
import { selectedIds } from "./selection";

void mount(document, documentSource()).then((app) => {
  if (location.protocol !== "about:") bindAddress(app);
  const { state, view, card, names, feed } = app;
  Object.assign(window, { vicinalPage: { app, state, view, card, names, feed, selectedIds: () => selectedIds(state) } });
  document.documentElement.dataset["ready"] = "true";
});
