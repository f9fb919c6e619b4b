// The page in a document of its own.
import "./map.css";
import "./panel.css";

import { openPage } from "./open";

void openPage();
