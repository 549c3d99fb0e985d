import { msg } from "../../shared/i18n/messages";

/** switchOffEffects are the consequences of switching skills off. */
export const switchOffEffects = (): string[] => [
  msg("admin.offWill.load"),
  msg("admin.offWill.stop"),
  msg("admin.offWill.refuse"),
  msg("admin.offWill.audit"),
];
