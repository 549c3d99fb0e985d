import type { Schema } from "../api/client";
import type { Doc, Place } from "./document";
import type { Draft } from "./draft";

/** What every part of the editor gets. */
export interface PartProps {
  draft: Draft;
  /** Not there for what is not made yet. */
  place?: Place;
  /** What it consists of for who looks at it, as it is kept. */
  profile?: Schema["Profile"];
  /** As it is kept. */
  base: Doc;
}
