import "../../src/style/tokens.css";
import "../../src/style/base.css";
import "../../src/ui/ui.css";
import { tests } from "./check";

// Every file of tests below src says what is to be tested by its import.
import.meta.glob("../../src/**/*.test.{ts,tsx}", { eager: true });

Object.assign(window, { tests });
