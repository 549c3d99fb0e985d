import { render } from "preact";
import { App } from "./shell/app";
import { tellLanguage } from "./words";
import "./style/tokens.css";
import "./style/base.css";
import "./ui/ui.css";

tellLanguage();
render(<App />, document.getElementById("app")!);
