import { waiting } from "../features/approvals/requests";
import { isAdmin, reviews } from "../shared/api/me";
import { msg } from "../shared/i18n/messages";
import type { IconName } from "../shared/ui";

/** A page in the menu. */
export interface NavItem {
  href: string;
  icon: IconName;
  text: string;
  count?: number;
}

/** navItems returns the pages that the user may see. */
export function navItems(): { work: NavItem[]; team: NavItem[] } {
  return {
    work: [
      { href: "/", icon: "chat", text: msg("shell.chat") },
      { href: "/library", icon: "library", text: msg("shell.library") },
      { href: "/compose", icon: "compose", text: msg("shell.compose") },
      { href: "/agents", icon: "agents", text: msg("shell.agents") },
      { href: "/servers", icon: "servers", text: msg("shell.servers") },
    ],
    team: [
      { href: "/asks", icon: "asks", text: msg("shell.asks"), count: waiting.value },
      ...(reviews.value ? [{ href: "/review", icon: "review" as const, text: msg("shell.review") }] : []),
      { href: "/usage", icon: "usage", text: msg("shell.usage") },
      { href: "/audit", icon: "audit", text: msg("shell.audit") },
      { href: "/settings", icon: "settings", text: msg("shell.settings") },
      ...(isAdmin.value ? [{ href: "/admin", icon: "admin" as const, text: msg("shell.admin") }] : []),
    ],
  };
}
