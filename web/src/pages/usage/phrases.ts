import { msg } from "../../shared/i18n/messages";

/** unusedTips are the ways to handle unused skills. */
export const unusedTips = (): string[] => [msg("usage.tipDescription"), msg("usage.tipAssign"), msg("usage.tipRemove")];
