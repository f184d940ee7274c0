import Base
import TestSupport

/// The page in a browser: actions and observations of tests, in words.
struct PageDriver: Sendable {
    let browser: Browser
    let base: String

    /// Opens a place of the page. Without a key the page requests one.
    init(_ service: ServiceProcess, at place: String = "/", key: String? = "dev") async throws {
        browser = try await Browser.start(script: Self.script)
        base = "http://127.0.0.1:\(service.port)"
        try await size(1440)
        try await open(place)
        if let key { try await signIn(key) }
    }

    /// Loads a document, which has no keys of the one before.
    func open(_ place: String) async throws {
        // A place that differs only after the # would load nothing.
        try await browser.send("Page.navigate", ["url": "about:blank"])
        try await browser.send("Page.navigate", ["url": .string(base + place)])
        try await see("document.readyState == 'complete' && document.querySelector('main')?.childElementCount > 0")
    }

    func signIn(_ key: String) async throws {
        try await fill("Key", key)
        try await click("Open")
        try await see("document.querySelector('form.sign-in') == null && t.text('main') != ''")
    }

    /// Goes to a place after the `#`.
    func go(_ place: String) async throws { try await browser.evaluate("location.hash = \(quoted(place))") }

    /// Waits until an expression is true.
    func see(_ expression: String, within limit: Duration = .seconds(40)) async throws {
        let milliseconds = limit.components.seconds * 1000
        let seen = try await browser.evaluate("t.wait(() => { return \(expression) }, \(milliseconds))")
        guard seen == true else {
            let text = try await browser.evaluate("document.body.innerText").string ?? ""
            throw DeadlineExceeded("\(expression) on the page: \(text)")
        }
    }

    /// Waits until a text appears in `scope`.
    func seeText(_ text: String, in scope: String = "body") async throws {
        try await see("t.text(\(quoted(scope))).includes(\(quoted(text)))")
    }

    /// Presses the button or follows the link with a text.
    func click(_ text: String, in scope: String = "body") async throws {
        try await see("t.press(\(quoted(scope)), \(quoted(text)))")
    }

    /// Enters a text in the field with a label.
    func fill(_ label: String, _ text: String) async throws {
        try await see("t.focus(\(quoted(label)))")
        try await browser.type(text)
    }

    /// Selects a word in the selection with a label.
    func choose(_ label: String, _ word: String) async throws {
        try await see("t.choose(\(quoted(label)), \(quoted(word)))")
    }

    func size(_ width: Int, isDark: Bool = false) async throws {
        try await browser.send(
            "Emulation.setDeviceMetricsOverride",
            ["width": .integer(width), "height": 900, "deviceScaleFactor": 1, "mobile": false])
        let scheme: JSON = ["name": "prefers-color-scheme", "value": .string(isDark ? "dark" : "light")]
        try await browser.send("Emulation.setEmulatedMedia", ["features": [scheme]])
    }

    /// Disconnects the browser from the network, or connects it again.
    func disconnect(_ isOffline: Bool = true) async throws {
        try await browser.send("Network.enable")
        try await browser.send(
            "Network.emulateNetworkConditions",
            ["offline": .bool(isOffline), "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1])
    }

    /// The visible faults of the view: too wide, cut, overlapping or too faint.
    func faults() async throws -> [String] {
        try await browser.evaluate("t.faults()").array?.compactMap(\.string) ?? []
    }

    func count(_ selector: String) async throws -> Int {
        try await browser.evaluate("document.querySelectorAll(\(quoted(selector))).length").int ?? 0
    }

    /// A text as an expression of JavaScript.
    func quoted(_ text: String) -> String { JSON.string(text).description }

    /// Functions to inspect and use the page, as `t`.
    private static let script = """
        globalThis.t = {
            async wait(condition, milliseconds) {
                for (const end = Date.now() + milliseconds; Date.now() < end; ) {
                    if (condition()) return true;
                    await new Promise((resolve) => setTimeout(resolve, 25));
                }
                return false;
            },
            text: (scope) => document.querySelector(scope)?.innerText ?? "",
            isSeen: (element) => element.checkVisibility({ visibilityProperty: true }),
            named(scope, selector, name) {
                const place = document.querySelector("dialog[open]") ?? document.querySelector(scope);
                const nameOf = (element) => element.getAttribute("aria-label") ?? element.innerText.trim();
                const all = [...(place?.querySelectorAll(selector) ?? [])].filter(t.isSeen);
                return all.find((element) => nameOf(element) === name);
            },
            press(scope, name) {
                const element = t.named(scope, "button, a, summary, label", name);
                element?.click();
                return Boolean(element);
            },
            labelled(label) {
                const place = document.querySelector("dialog[open]") ?? document;
                const field = [...place.querySelectorAll("label")].find((element) => element.innerText.trim() === label);
                return field?.control ?? t.named("body", "input, textarea, select", label);
            },
            focus(label) {
                const control = t.labelled(label);
                control?.focus();
                control?.select();
                return document.activeElement === control && Boolean(control);
            },
            choose(label, word) {
                const control = t.labelled(label);
                if (!control) return false;
                control.value = word;
                control.dispatchEvent(new Event("change", { bubbles: true }));
                return control.value === word;
            },
        };
        """ + PageLooks.script
}

/// Checks a page for readers: all of it must be visible and readable.
enum PageLooks {
    static let script = """
        t.pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
        t.colour = (value) => {
            t.pixel.clearRect(0, 0, 1, 1);
            t.pixel.fillStyle = value;
            t.pixel.fillRect(0, 0, 1, 1);
            return [...t.pixel.getImageData(0, 0, 1, 1).data];
        };
        t.luminance = (rgb) => {
            const [r, g, b] = rgb.slice(0, 3).map((part) => part / 255)
                .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        t.ground = (element) => {
            for (let place = element; place; place = place.parentElement) {
                const colour = t.colour(getComputedStyle(place).backgroundColor);
                if (colour[3] === 255) return colour;
            }
            return t.colour(getComputedStyle(document.documentElement).backgroundColor);
        };
        t.told = (element) => `${element.tagName.toLowerCase()}.${element.className?.baseVal ?? element.className}`
            + ` "${element.textContent.trim().slice(0, 40)}"`;
        t.isHidden = (element) => !t.isSeen(element) || Boolean(element.closest(".visually-hidden, .skip"));
        // The position of the text itself, line by line: of nodes with words.
        t.words = () => {
            const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            const found = [];
            while (walker.nextNode()) {
                const element = walker.currentNode.parentElement;
                if (!walker.currentNode.data.trim() || t.isHidden(element) || element.closest("option, script, noscript")) continue;
                const range = document.createRange();
                range.selectNodeContents(walker.currentNode);
                found.push({ element, rects: [...range.getClientRects()].filter(({ width, height }) => width > 1 && height > 1) });
            }
            return found;
        };
        t.clip = (element) => {
            // The part that scrolling or clipping ancestors leave visible.
            let [left, top, right, bottom] = [-1e9, -1e9, 1e9, 1e9];
            for (let place = element; place && place !== document.body; place = place.parentElement) {
                const { overflowX, overflowY } = getComputedStyle(place);
                const box = place.getBoundingClientRect();
                if (overflowX !== "visible") [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
                if (overflowY !== "visible") [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
            }
            return { left, top, right, bottom };
        };
        t.faults = () => {
            const faults = [];
            const open = document.querySelector("dialog[open]");
            if (document.documentElement.scrollWidth > innerWidth) faults.push(`wider than the window: ${document.documentElement.scrollWidth}`);
            for (const frame of document.querySelectorAll(".table-frame, dialog[open], .tile, .panel, button, select")) {
                if (!t.isHidden(frame) && frame.scrollWidth > frame.clientWidth + 1) faults.push(`wider than its frame: ${t.told(frame)}`);
            }
            const words = t.words().filter(({ element }) => !open || open.contains(element));
            const pieces = [];
            for (const { element, rects } of words) {
                const style = getComputedStyle(element);
                const isEllipsis = style.textOverflow === "ellipsis" || Boolean(element.closest(".title"));
                const scroller = element.closest("pre, .excerpt, .index, dialog, .dialog-body");
                const clip = t.clip(element);
                for (const rect of rects) {
                    if (!isEllipsis && !scroller && (rect.left < clip.left - 1 || rect.right > clip.right + 1 || rect.top < clip.top - 2 || rect.bottom > clip.bottom + 2)) {
                        faults.push(`cut: ${t.told(element)}`);
                    }
                    const seen = { left: Math.max(rect.left, clip.left), top: Math.max(rect.top, clip.top), right: Math.min(rect.right, clip.right), bottom: Math.min(rect.bottom, clip.bottom) };
                    if (seen.right > seen.left && seen.bottom > seen.top) pieces.push({ element, ...seen });
                }
                const [text, ground] = [t.luminance(t.colour(style.color)), t.luminance(t.ground(element))];
                const contrast = (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
                if (contrast < 4.5) faults.push(`contrast ${contrast.toFixed(2)}: ${t.told(element)}`);
            }
            pieces.sort((a, b) => a.top - b.top);
            for (const [index, one] of pieces.entries()) {
                for (let next = index + 1; next < pieces.length && pieces[next].top < one.bottom - 2; next += 1) {
                    const other = pieces[next];
                    if (one.element === other.element || one.element.closest(".toasts, dialog") !== other.element.closest(".toasts, dialog")) continue;
                    const width = Math.min(one.right, other.right) - Math.max(one.left, other.left);
                    const height = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
                    // Lines of one paragraph may touch.
                    if (width > 2 && height > 5) faults.push(`overlap: ${t.told(one.element)} and ${t.told(other.element)}`);
                }
            }
            return [...new Set(faults)];
        };
        """
}
