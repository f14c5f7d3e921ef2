import type { LicenseState, LicenseVerdict } from "../../../config/contract/license.ts";
import type { Voice } from "../../../config/contract/voices.ts";
import type { Failure, FieldError } from "../../contract/errors.ts";
import type { AccountError, Role } from "../../store/accounts/accounts.ts";
import type { SignInRefusal } from "../../store/accounts/identities.ts";
import type { AuditAction } from "../../store/audit.ts";
import type { Scope } from "../../store/keys/key.ts";
import type { LexiconError } from "../../store/lexicon.ts";
import type { PhonemesProblem } from "../../text/phonemes.ts";
import type { Alphabet } from "../../text/pls/alphabets.ts";
import type { PlsFault, SoundsFault } from "../../text/pls/faults.ts";
import { type Content, html } from "../html/html.ts";

const roles: Record<Role, string> = { owner: "owner", member: "member", viewer: "viewer" };

const sounds = (fault: SoundsFault): string => {
  switch (fault.kind) {
    case "long":
      return `it has ${fault.length} characters, and may have ${fault.most}`;
    case "alphabet":
      return `its alphabet must be ${fault.allowed.join(" or ")}`;
    case "no-sound":
      return `the sign ${fault.sign} has no sound in the phonetic alphabet`;
    case "stress-mark":
      return "a stress mark must be followed by a syllable";
    case "empty":
      return "it is empty";
    case "written":
      return fault.problem;
  }
};

const pls = (fault: PlsFault): string => {
  switch (fault.kind) {
    case "xml":
      return `This cannot be read as XML near column ${fault.column}: ${fault.saying}.`;
    case "encoding":
      return `The file must be UTF-8; it says that it is ${fault.encoding}.`;
    case "not-utf-8":
      return "The file must be UTF-8, and is not.";
    case "doctype":
      return "A document type (<!DOCTYPE …>) is not read, nor are entities of one's own; take it out.";
    case "deep":
      return `Elements stand at most ${fault.most} deep in each other.`;
    case "root":
      return `The file must begin with <lexicon version="1.0" xmlns="${fault.namespace}" …>.`;
    case "version":
      return 'The lexicon must say version="1.0".';
    case "alphabet":
      return `The lexicon's alphabet must be ${fault.allowed.join(" or ")}.`;
    case "language":
      return "xml:lang must name a language that a voice speaks, as en or en-US.";
    case "misplaced":
      return `<${fault.element}> has no place in <${fault.parent}>.`;
    case "no-grapheme":
      return "A lexeme needs a grapheme.";
    case "no-phoneme":
      return "A lexeme needs a phoneme; an alias cannot be taken in.";
    case "phoneme":
      return `The phoneme ${fault.text}: ${sounds(fault.why)}.`;
    case "grapheme":
      return `The grapheme ${fault.text}: a word is 1 to 60 letters, with hyphens and apostrophes between.`;
    case "twice":
      return `${fault.text} stands in line ${fault.line} already, with other sounds.`;
    case "full":
      return `A lexicon has ${fault.most} words at most.`;
  }
};

/**
 * All texts of the dashboard in English. The other languages have the same keys, which `tsc` checks. Messages
 * of the stores and of the API are in English already, and are shown unchanged.
 */
export const englishTexts = {
  frame: {
    skip: "Skip to the content",
    pages: "Pages",
    signOut: "Sign out",
    account: "Account",
    keys: "Keys",
    playground: "Playground",
    words: "Words",
    usage: "Usage",
    people: "People",
    changes: "Changes",
    role: (role: Role, team: string | undefined) =>
      team === undefined ? roles[role] : `${roles[role]} of ${team}`,
    show: "Show",
  },
  signIn: {
    first: "First sign-in",
    makeOwner: "Make the owner",
    signIn: "Sign in",
    signInWith: (provider: string) => `Sign in with ${provider}`,
    fromNowOnWith: (provider: string) => `Sign in from now on with ${provider}`,
    choosePassword: "Choose a password",
    chooseThis: "Choose this password",
    yourName: "Your name",
    name: "Name",
    password: "Password",
    passwordHelp: (shortest: number) => `${shortest} characters or more; a few words do well.`,
    lost: "Lost the password? An owner can make you a link to choose another.",
    signInAs: (name: Content) => html`You sign in as ${name}.`,
    nobodyYet: (command: Content) =>
      html`No user can sign in with a password yet. Open the link that ${command} printed: it creates the first owner.`,
    elsewhere: (link: Content, setting: Content) =>
      html`Elsewhere the link is ${link} with the text of the file that ${setting} names.`,
    wrong: "The name or the password is not right.",
    wrongLink: "This link is not the one that the server made; open that one again.",
    deadLink: "This link was used or has ended. Ask an owner for another.",
    passwordLength: (shortest: number, longest: number, given: number) =>
      `A password has ${shortest} to ${longest} characters; this one has ${given}.`,
    passwordIsName: "The password is the name and little more; choose another.",
    passwordRepeats: "The password repeats itself; choose another.",
    manySignIns: "Many people are signing in at once; try again in a moment.",
    manyTries: (minutes: number) =>
      `Too many tries; wait ${minutes === 1 ? "a minute" : `${minutes} minutes`} and try again.`,
  },
  account: {
    title: "Your account",
    sessions: "Sessions",
    caption:
      "Where you are signed in. Times are UTC. A session ends after a day without use and after a week.",
    begun: "Signed in",
    seen: "Last used",
    ending: "End",
    thisOne: "this one",
    end: (begun: string) => `End that of ${begun}`,
    endOthers: "End all others",
    password: "Password",
    byProvider: "You sign in by the provider; there is no password here.",
    current: "Present password",
    next: "New password",
    change: "Change the password",
    changeHelp: "It ends your other sessions.",
    changed: "The password is changed, and your other sessions have ended.",
    wrong: "The present password is not right.",
  },
  provider: {
    notBegunHere:
      "This sign-in was started in another browser, is already complete, or took more than ten minutes. Start again.",
    openLink: "Open the link that you were given, and choose how to sign in there.",
    otherIssuer: (provider: string) => `The answer of ${provider} is of another issuer; begin again.`,
    lacksSecret: (provider: string) =>
      `The client secret for ${provider} is missing on this server. Ask the administrator of the server.`,
    lacksAuthority: (provider: string) =>
      `The certificate of the authority of ${provider} is missing on this server. Ask the administrator of the server.`,
    ended: (provider: string, reason: string) => `${provider} ended the sign-in: ${reason}.`,
    unreachable: (provider: string) => `${provider} cannot be reached now; try again in a moment.`,
    late: "This sign-in took too long or was used already; begin again.",
    unknownServer: (provider: string, reason: string) =>
      `${provider} does not recognize this server (${reason}). The administrator of the server must check the client ID, the client secret and the redirect URI.`,
    notAProvider: (provider: string) => `${provider} returned an invalid response; ask its administrator.`,
    unfitting: (provider: string) => `The answer of ${provider} does not fit this sign-in; begin again.`,
    refused: ({ why }: SignInRefusal) => why,
  },
  keys: {
    title: "API keys",
    made: (name: string) => `The key ${name} is made.`,
    rotated: (name: string, end: Content) =>
      html`The key ${name} has this new secret. The one before it ends ${end} UTC.`,
    copyNow: "Copy it now: it is not shown again.",
    tryIt: "Try it in a terminal",
    none: "There are no keys yet.",
    caption: "Times are UTC. A revoked key is refused everywhere within 5 seconds.",
    name: "Name",
    team: "Team",
    may: "May",
    limits: "Limits",
    secrets: "Secrets (digests)",
    lastUsed: "Last used",
    use: "Use",
    change: "Change",
    scopes: {
      "tts:write": "speak",
      "oov:read": "read unknown words",
      admin: "manage keys",
    } satisfies Record<Scope, string> as Record<Scope, string>,
    noEnd: "no end",
    ends: (time: Content) => html`ends ${time}`,
    serverLimits: "the server's",
    perMinute: (count: string) => `${count} a minute`,
    atOnce: (count: string) => `${count} at once`,
    today: (count: string) => `${count} today`,
    lastDays: (days: string) => `The last ${days} days`,
    day: "Day",
    requests: "Requests",
    failed: "Failed",
    audio: "Audio, s",
    changeKey: (name: string) => `Change ${name}`,
    overlap: "Hours that the old secret still counts",
    rotate: "Rotate",
    revoke: "Revoke now",
    makeKey: "Make a key",
    nameHelp: "Who or what uses it.",
    teamHelp: "Whose unknown words it shares; may be empty.",
    endsOn: "Ends on",
    endsOnHelp: "Never, where it is empty.",
    requestsPerMinute: "Requests a minute",
    streams: "Streams at once",
    limitHelp: "The server's own limit, where it is empty.",
    make: "Make the key",
    wrongField: ({ detail }: FieldError) => detail,
  },
  playground: {
    title: "Playground",
    model: "Model",
    language: "Language",
    everyLanguage: "every",
    voice: "Voice",
    voiceOf: (id: string, gender: Voice["gender"], language: string, engine: string) =>
      `${id} (${[gender, language, engine].filter(Boolean).join(", ")})`,
    sample: "Play a sample",
    text: "Text",
    speak: "Speak",
    stop: "Stop",
    waveform: "How loud the speech is",
    litWords: "Words, lit as they are spoken",
    options: "Options",
    speed: "Speed (speedAlpha)",
    speedHelp: "mist: below 1 is faster; arcana: above 1 is.",
    rate: "Sampling rate, Hz",
    rateHelp: "The model's own, where it is empty.",
    mist: "mist and mistv2",
    plainNumbers: "speak numbers as they are written",
    pauses: "<N> is a pause of N milliseconds",
    phonemes: "{phonemes} in curly brackets",
    keepWords: "keep unknown words for review, when it is downloaded",
    inlineSpeeds: "Speeds of [words] in square brackets",
    takeAlong: "Take it along",
    format: "Format",
    download: "Download",
    asCode: "As code",
    copy: "Copy",
    code: "The request as code",
    live: "Type and listen",
    liveText: "Text to hear while you type",
    liveHelp:
      "Each sentence is spoken once it is complete, with the voice and the options above. Enter, or a pause, speaks what is not complete.",
    interrupt: "Interrupt",
    liveWords: "Words that were spoken while you typed",
    before: "Spoken before, in this browser",
    forget: "Forget all",
    needsScripts: "This page needs scripts, which your browser does not run.",
    refused: ({ message }: Failure) => message,
  },
  /** Scripts replace the names in braces. */
  client: {
    length: "{length} of {limit} characters",
    tooLong:
      "The text may have {limit} characters with {model} at the dashboard and has {length}; split it, or send it through the API.",
    speaking: "Speaking …",
    firstAudio: "First audio after {ms} ms.",
    spoken: "First audio after {ms} ms; {seconds} s of speech in {whole} ms.",
    making: "Making the file …",
    made: "{file} at {rate} Hz.",
    copied: "Copied.",
    seconds: "{seconds} s",
    answered: "The server answered {status}.",
    brokeOff: "The speech broke off; try again.",
    unreachable: "The server cannot be reached; try again in a moment.",
    liveFirstAudio: "First audio {ms} ms after the sentence.",
    interrupted: "Interrupted.",
    liveClosed: "The server closed the connection; type on to connect again.",
  },
  words: {
    title: "Unknown words",
    noTeam: "keys without a team",
    team: "Team",
    nothing: (field: Content) =>
      html`Nothing to review. Words that no dictionary has appear here within a minute of a request with ${field}.`,
    met: (language: string, count: number, shown: string, first: Content, last: Content) =>
      html`${language}; met ${count === 1 ? "once" : `${shown} times`}, from ${first} to ${last} UTC`,
    dismiss: (word: string) => `Dismiss ${word}`,
    how: (alphabet: Content, field: Content) => html`How are these said? ${alphabet} is that of ${field}.`,
    alphabet: "The phonetic alphabet",
    sentences: "Sentences",
    sentencesKept: (longest: string) =>
      `The sentence around a word that is met is kept, of up to ${longest} characters.`,
    sentencesNotKept: "Words are kept without the sentences around them.",
    keepSentences: "Keep sentences",
    forgetSentences: "Keep no sentences, and forget those kept",
    say: (word: string) => `Say ${word} as`,
    listen: (word: string) => `Listen to ${word}`,
    save: (word: string) => `Save ${word}`,
    removeWord: (word: string) => `Remove ${word}`,
    lexicon: "Lexicon",
    empty: (one: Content, other: Content) =>
      html`Empty yet. What is saved here is spoken by ${one} and ${other} within 5 seconds, for every key of the team.`,
    word: "Word",
    language: "Language",
    saidAs: "Said as",
    remove: "Remove",
    addWord: "Add a word",
    add: "Add the word",
    stress: (example: Content) =>
      html`0, 1 or 2 before a vowel is no stress, the main stress or a second one: ${example} is custom.`,
    sounds: "Sounds",
    asIn: "As in",
    noSuchLanguage: "The language is none that a voice speaks.",
    wordRule: "A word is 1 to 60 letters, with hyphens and apostrophes between.",
    longSounds: (most: number) => `A pronunciation has ${most} characters at most.`,
    unreadable: (written: string, after: string, problem: PhonemesProblem) =>
      `The pronunciation {${written}} cannot be read after ${after}: ${problem}.`,
    refused: ({ message }: LexiconError) => message,
  },
  files: {
    title: "Files",
    asPls: (link: Content) => html`As ${link}, a file for each language.`,
    soundsIn: "Sounds in",
    alphabets: {
      ipa: "International Phonetic Alphabet, for other programs",
      "x-svc-tts": "the alphabet of this page, exactly as written",
    } satisfies Record<Alphabet, string> as Record<Alphabet, string>,
    export: "Export",
    fileToImport: "File to import",
    importHelp:
      "All of it or, where something is wrong, nothing; a word that is here gets the file's sounds.",
    import: "Import",
    imported: (count: number, shown: string) =>
      `${count === 1 ? "One word was" : `${shown} words were`} taken in.`,
    nothingTaken: "Nothing was taken in. In the file:",
    line: (line: string, problem: string) => `Line ${line}: ${problem}`,
    more: (count: string) => `And ${count} more.`,
    back: "Back to the words",
    problem: pls,
    alphabetRule: (names: readonly string[]) => `The alphabet must be ${names.join(" or ")}.`,
    large: (most: string) => `The file is larger than ${most}; send one of ${most} at most.`,
    oneFile: "There is more than one file; send one at a time.",
    manyFields: "The form has more fields than this page's; load the page again and send that one.",
    unreadable: "The form cannot be read; send the file once more.",
    noFile: "There is no file, or it is empty; choose one.",
  },
  usage: {
    title: "Usage",
    spoken: "Spoken",
    byDay: "By day",
    byKey: "By key",
    byVoice: "By voice",
    day: "Day",
    key: "Key",
    team: "Team",
    model: "Model",
    voice: "Voice",
    csv: "Download as CSV",
    csvRows: ": a row for each day, key and voice, the newest day first",
    csvCut: (most: string, rows: string) => `the newest ${most} rows of ${rows}`,
    csvWhy: ", as more are too many for one file",
    note: "Requests that were to be spoken. Days are UTC. First audio is the time from a streamed request to its first audio. Written every 5 seconds.",
    health: "Health",
    license: "License",
    licenseStates: {
      valid: "valid",
      grace: "grace",
      expired: "expired",
      invalid: "invalid",
      missing: "missing",
      not_required: "not required",
    } satisfies Record<LicenseState, string> as Record<LicenseState, string>,
    licenseUntil: (end: Content) => html`, until ${end} UTC`,
    speechEnds: (end: Content) => html`; speech ends ${end} UTC`,
    licenseWhy: ({ message }: LicenseVerdict) => message,
    models: "Models, as the replica sees them that made this page",
    state: "State",
    reachable: "reachable",
    notReachable: "not reachable",
    days: "Days",
    lastDays: (days: string) => `the last ${days} days`,
    plot: (first: string, last: string, most: string) =>
      `Requests a day from ${first} to ${last}, ${most} at most`,
    failedOnTop: (plot: string) => `${plot}; failed ones on top.`,
    nothing: "Nothing was spoken in this time.",
    requests: "Requests",
    failed: "Failed",
    characters: "Characters",
    audio: "Audio, s",
    firstAudio: "First audio, ms",
    longest: "longest, ms",
  },
  people: {
    title: "People",
    roles,
    roleMeanings: {
      owner: "sees and changes everything",
      member: "makes keys of the team",
      viewer: "sees the team's keys",
    } satisfies Record<Role, string> as Record<Role, string>,
    giveLink: (name: Content) =>
      html`Give this link to ${name}. It is shown once, and is good for a week or until it is used.`,
    name: "Name",
    role: "Role",
    team: "Team",
    hasSignedIn: "Has signed in",
    change: "Change",
    signsInBy: { password: "by password", provider: "by provider", none: "not yet" },
    changePerson: (name: string) => `Change ${name}`,
    newLink: "New link to sign in",
    remove: "Remove",
    revokeKeys: (names: string) => `Also revoke the keys that they made or rotated: ${names}`,
    add: "Add a user",
    teamHelp: "Members and viewers have one.",
    addAndLink: "Add, and make a link",
    nameRule:
      "A name is 1 to 64 letters, digits and ._@+-, and begins with a letter or digit; an e-mail address is one.",
    teamRule: "A team is 1 to 64 letters, digits, spaces and ._@:+-, a letter or digit first.",
    roleRule: "The role is one of owner, member, viewer.",
    needsTeam: (role: Role) => `A ${roles[role]} belongs to a team; name it.`,
    refused: ({ message }: AccountError) => message,
  },
  changes: {
    title: "Changes",
    caption: (count: string) => `Changes and sign-ins, ${count} on a page, newest first. Times are UTC.`,
    older: "Older changes",
    from: (address: string) => `from ${address}`,
    when: "When",
    who: "Who",
    what: "What",
    of: "Of",
    more: "More",
    actions: {
      "key created": "key created",
      "key rotated": "key rotated",
      "key revoked": "key revoked",
      "person added": "person added",
      "person changed": "person changed",
      "person removed": "person removed",
      "link made": "link made",
      "password chosen": "password chosen",
      "word saved": "word saved",
      "words imported": "words imported",
      "word removed": "word removed",
      "word dismissed": "word dismissed",
      "sentences turned on": "sentences turned on",
      "sentences turned off": "sentences turned off",
      "sign-in linked": "sign-in linked",
      "signed in": "signed in",
      "sign-in refused": "sign-in refused",
    } satisfies Record<AuditAction, string> as Record<AuditAction, string>,
    commandLine: "the command line",
    somebody: "unknown user",
    key: (name: string) => `the key ${name}`,
    firstOwner: "the first owner",
    byGroup: (role: string) => `${role}, by a group`,
    scopesOf: (scopes: string, team: string) => `${scopes} of ${team}`,
    wordCount: (count: number, shown: string) => (count === 1 ? "1 word" : `${shown} words`),
    by: (provider: string, reason: Content) => html`by ${provider}${reason}`,
  },
  failures: {
    title: "That did not work",
    back: "Back to the dashboard",
    said: ({ message }: Failure) => message,
    signedOut: "You are not signed in any more; sign in again.",
    forRoles: (wanted: readonly Role[], role: Role) =>
      `This is for ${wanted.map((one) => roles[one]).join(" and ")}; you are a ${roles[role]}.`,
    otherSite: "This form was sent by another site; open the dashboard itself and try again.",
    earlierSession: "This page is of an earlier session; load it again and try once more.",
    database: "The database cannot be reached now; try again in a moment.",
    language: (names: readonly string[]) => `The language is one of ${names.join(", ")}.`,
  },
};

/** Content of each language. */
export type Texts = typeof englishTexts;
