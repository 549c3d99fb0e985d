import "../../src/shared/style/tokens.css";
import "../../src/shared/style/base.css";
import "../../src/shared/ui/ui.css";
import { loadMessages, loadRest, type Messages, setMessageFiles } from "../../src/shared/i18n/messages";
import { tests } from "./check";

// Each test file registers its tests when it is imported.
import.meta.glob("../../src/**/*.test.{ts,tsx}", { eager: true });

setMessageFiles(
  import.meta.glob<Messages>("../../src/shared/i18n/*.json", { query: "?start", import: "default" }),
  import.meta.glob<Messages>("../../src/shared/i18n/*.json", { query: "?rest", import: "default" }),
);
await loadMessages("en");
await loadRest();
Object.assign(window, { tests });
