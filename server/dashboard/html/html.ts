/** Escaped markup, which only `html` creates. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Values in a page. Text is escaped; `false` and `undefined` are empty. */
export type Content = Html | string | number | false | undefined | readonly Content[];

/** Creates a page or a part of one. Attributes must be in double quotes. */
export function html(parts: TemplateStringsArray, ...places: readonly Content[]): Html {
  return new Html(parts.map((part, i) => part + written(places[i])).join(""));
}

function written(content: Content): string {
  if (content === undefined || content === false) return "";
  if (content instanceof Html) return content.text;
  if (typeof content === "object") return content.map(written).join("");
  return String(content).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
