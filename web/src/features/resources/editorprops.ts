import type { Schema } from "../../shared/api/client";
import type { Doc, ResourceRef } from "./document";
import type { Draft } from "./draft";

/** The props of every section of the editor. */
export interface PartProps {
  draft: Draft;
  /** Undefined for a new resource. */
  place?: ResourceRef;
  /** The profile of the saved agent for the current user. */
  profile?: Schema["Profile"];
  /** The saved document. */
  base: Doc;
  /** The user may not change the document. */
  readOnly?: boolean;
}
