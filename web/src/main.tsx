import { render } from "preact";
import { App } from "./shell/app";
import { language, speak } from "./words";
import "./style/tokens.css";
import "./style/base.css";
import "./ui/ui.css";

speak(language.value);
render(<App />, document.getElementById("app")!);
