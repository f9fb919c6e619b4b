// Opens the page of a document, with its data in the document and its view in the address.
import { bindAddress } from "./address";
import { type App, mount } from "./app";
import { documentSource } from "./data";
import { selectedIds } from "./selection";

export const openPage = (): Promise<App> =>
  mount(document, documentSource()).then((app) => {
    if (location.protocol !== "about:") bindAddress(app);
    const { state, view, card, names, feed } = app;
    Object.assign(window, { vicinalPage: { app, state, view, card, names, feed, selectedIds: () => selectedIds(state) } });
    document.documentElement.dataset["ready"] = "true";
    return app;
  });
