/** The sections of the documentation, by the start of the paths of their pages. */
const sections: Record<string, string> = {
  "/": "web#chat",
  "/chat": "web#chat",
  "/shared": "hub#shared-conversations",
  "/invite": "hub#invitations",
  "/library": "web#library",
  "/library/add": "web#adding-skills",
  "/review": "web#review",
  "/compose": "web#composer",
  "/agents": "web#agents",
  "/servers": "web#servers",
  "/asks": "web#approvals",
  "/usage": "web#usage-and-audit",
  "/audit": "web#usage-and-audit",
  "/settings": "web#settings-and-administration",
  "/settings/migrate": "migrate",
  "/admin": "web#settings-and-administration",
  "/admin/sign-in": "hub#accounts",
  "/account": "hub#accounts",
  "/docs": "README",
};

/** helpFor returns the address of the section for a page. */
export function helpFor(path: string): string {
  const parts = path.split("/").filter(Boolean);
  for (let n = parts.length; n > 0; n--) {
    const section = sections["/" + parts.slice(0, n).join("/")];
    if (section) return `/docs/${section}`;
  }
  return `/docs/${sections["/"]}`;
}
