/** addSecretPage returns the address of the page that asks for the value of a secret, for the owner of a namespace. */
export const addSecretPage = (name: string, namespace = "default"): string =>
  `/settings/secrets?${new URLSearchParams({ name, owner: namespace })}`;
