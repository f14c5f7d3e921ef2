import { LruCache } from "../../lib/lru-cache.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";

/** An object that is kept for long, in whatever form. */
export interface StoredObject {
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  /** By which it is found together with others. */
  readonly groups: readonly string[];
  /** Each reading may be a copy of its own. */
  readonly object: KubernetesObject;
}

/** Kept as it is. */
export function storeUncompressed(object: KubernetesObject): StoredObject {
  const { uid, resourceVersion } = object.metadata;
  return { uid, resourceVersion, groups: [], object };
}

/** JSON, cut at its quotation marks: what stands at even places is punctuation, mostly, and at odd ones names and values. */
type Form = readonly string[];

const mark = '"';
/** Shapes that objects of one kind have at a time; of rarer ones each is a form of its own. */
const mostForms = 16;
/** Places are kept as the characters of a string. */
const mostPieces = 65_536;

/**
 * Keeps the objects of one kind, of which many were made from one template, as what sets each apart: JSON of the same number of pieces
 * shares one form, and of each object only the pieces that differ are kept. A Deployment of 10 kB, some 40 kB as JavaScript objects,
 * takes about 1 kB, for some 40 microseconds a reading.
 */
export class TemplateCompressor {
  /** By number of pieces. */
  readonly #forms = new LruCache<number, Form>(mostForms);
  readonly #groupsOf: (object: KubernetesObject) => readonly string[];

  constructor(groupsOf: (object: KubernetesObject) => readonly string[] = () => []) {
    this.#groupsOf = groupsOf;
  }

  readonly hold = (object: KubernetesObject): StoredObject => {
    const pieces = JSON.stringify(object).split(mark);
    return new CompressedObject(object, this.#groupsOf(object), pieces, this.#formOf(pieces));
  };

  #formOf(pieces: Form): Form {
    const form = this.#forms.get(pieces.length) ?? pieces;
    this.#forms.set(pieces.length, form);
    return pieces.length > mostPieces ? pieces : form;
  }
}

class CompressedObject implements StoredObject {
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly groups: readonly string[];
  readonly #form: Form;
  /** The places where its pieces differ from the form: one character code for each. */
  readonly #places: string;
  /** Those pieces, joined: a piece alone would keep all of the text alive that it was cut from. */
  readonly #pieces: string;

  constructor({ metadata }: KubernetesObject, groups: readonly string[], pieces: Form, form: Form) {
    this.groups = groups;
    this.uid = metadata.uid;
    this.resourceVersion = metadata.resourceVersion;
    const places: number[] = [];
    for (let place = 0; place < pieces.length; place++) if (pieces[place] !== form[place]) places.push(place);
    this.#form = form;
    this.#places = String.fromCharCode(...places);
    this.#pieces = places.map((place) => pieces[place]).join(mark);
  }

  get object(): KubernetesObject {
    const pieces = this.#form.slice();
    const own = this.#pieces.split(mark);
    for (let i = 0; i < this.#places.length; i++) pieces[this.#places.charCodeAt(i)] = own[i] ?? "";
    return JSON.parse(pieces.join(mark)) as KubernetesObject;
  }
}
