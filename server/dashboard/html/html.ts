/** Markup that may go into a page as it is: made by `html` alone. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** What a place in a page may hold; a text is escaped, and `false` and `undefined` leave the place empty. */
export type Content = Html | string | number | false | undefined | readonly Content[];

/** A page or a part of one. Attributes stand in double quotes. */
export function html(parts: TemplateStringsArray, ...places: readonly Content[]): Html {
  return new Html(parts.map((part, i) => part + written(places[i])).join(""));
}

function written(content: Content): string {
  if (content === undefined || content === false) return "";
  if (content instanceof Html) return content.text;
  if (typeof content === "object") return content.map(written).join("");
  return String(content).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
