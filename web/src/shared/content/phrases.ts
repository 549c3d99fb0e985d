import { msg } from "../i18n/messages";

/** diagramTitle names a diagram by its kind, such as flowchart. */
export const diagramTitle = (kind: string): string => (kind ? msg("diagram.ofKind", { kind }) : msg("diagram.diagram"));

/** pictureTitle names a picture by its alternative text. */
export const pictureTitle = (alt: string): string => (alt ? msg("content.pictureOf", { alt }) : msg("content.picture"));

/** tooShort says that a text has fewer characters than it needs. */
export const tooShort = (min: number, has: number): string => msg("form.short", { count: min, has });
