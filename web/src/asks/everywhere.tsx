/** What may appear in front of any page: questions to whoever is signed in. */
export default function Everywhere() {
  return null;
}
