// Written by scripts/embed-page.
#include "CPage.h"

// #embed is of C23; the compiler takes it in older dialects too.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char api_js[] = {
#embed "site/api.js"
};

static const unsigned char app_js[] = {
#embed "site/app.js"
};

static const unsigned char apps_js[] = {
#embed "site/apps.js"
};

static const unsigned char base_css[] = {
#embed "site/base.css"
};

static const unsigned char bulk_js[] = {
#embed "site/bulk.js"
};

static const unsigned char description_js[] = {
#embed "site/description.js"
};

static const unsigned char docs_css[] = {
#embed "site/docs.css"
};

static const unsigned char docs_html[] = {
#embed "site/docs.html"
};

static const unsigned char docs_js[] = {
#embed "site/docs.js"
};

static const unsigned char dom_js[] = {
#embed "site/dom.js"
};

static const unsigned char events_js[] = {
#embed "site/events.js"
};

static const unsigned char exchange_js[] = {
#embed "site/exchange.js"
};

static const unsigned char find_js[] = {
#embed "site/find.js"
};

static const unsigned char format_js[] = {
#embed "site/format.js"
};

static const unsigned char forms_js[] = {
#embed "site/forms.js"
};

static const unsigned char history_js[] = {
#embed "site/history.js"
};

static const unsigned char icon_svg[] = {
#embed "site/icon.svg"
};

static const unsigned char index_html[] = {
#embed "site/index.html"
};

static const unsigned char keys_js[] = {
#embed "site/keys.js"
};

static const unsigned char launches_js[] = {
#embed "site/launches.js"
};

static const unsigned char main_js[] = {
#embed "site/main.js"
};

static const unsigned char markdown_js[] = {
#embed "site/markdown.js"
};

static const unsigned char metrics_js[] = {
#embed "site/metrics.js"
};

static const unsigned char operation_js[] = {
#embed "site/operation.js"
};

static const unsigned char parts_css[] = {
#embed "site/parts.css"
};

static const unsigned char parts_js[] = {
#embed "site/parts.js"
};

static const unsigned char plot_js[] = {
#embed "site/plot.js"
};

static const unsigned char questions_js[] = {
#embed "site/questions.js"
};

static const unsigned char route_js[] = {
#embed "site/route.js"
};

static const unsigned char schema_js[] = {
#embed "site/schema.js"
};

static const unsigned char segments_js[] = {
#embed "site/segments.js"
};

static const unsigned char service_js[] = {
#embed "site/service.js"
};

static const unsigned char session_js[] = {
#embed "site/session.js"
};

static const unsigned char sessions_js[] = {
#embed "site/sessions.js"
};

static const unsigned char sets_js[] = {
#embed "site/sets.js"
};

static const unsigned char setversion_js[] = {
#embed "site/setversion.js"
};

static const unsigned char shortcuts_js[] = {
#embed "site/shortcuts.js"
};

static const unsigned char signin_js[] = {
#embed "site/signin.js"
};

static const unsigned char stream_js[] = {
#embed "site/stream.js"
};

static const unsigned char task_js[] = {
#embed "site/task.js"
};

static const unsigned char tasks_js[] = {
#embed "site/tasks.js"
};

static const unsigned char tryit_js[] = {
#embed "site/tryit.js"
};

static const unsigned char views_css[] = {
#embed "site/views.css"
};

static const unsigned char watch_js[] = {
#embed "site/watch.js"
};

static const unsigned char waterfall_js[] = {
#embed "site/waterfall.js"
};

static const unsigned char words_js[] = {
#embed "site/words.js"
};

const page_file page_files[] = {
    {"api.js", api_js, sizeof api_js},
    {"app.js", app_js, sizeof app_js},
    {"apps.js", apps_js, sizeof apps_js},
    {"base.css", base_css, sizeof base_css},
    {"bulk.js", bulk_js, sizeof bulk_js},
    {"description.js", description_js, sizeof description_js},
    {"docs.css", docs_css, sizeof docs_css},
    {"docs.html", docs_html, sizeof docs_html},
    {"docs.js", docs_js, sizeof docs_js},
    {"dom.js", dom_js, sizeof dom_js},
    {"events.js", events_js, sizeof events_js},
    {"exchange.js", exchange_js, sizeof exchange_js},
    {"find.js", find_js, sizeof find_js},
    {"format.js", format_js, sizeof format_js},
    {"forms.js", forms_js, sizeof forms_js},
    {"history.js", history_js, sizeof history_js},
    {"icon.svg", icon_svg, sizeof icon_svg},
    {"index.html", index_html, sizeof index_html},
    {"keys.js", keys_js, sizeof keys_js},
    {"launches.js", launches_js, sizeof launches_js},
    {"main.js", main_js, sizeof main_js},
    {"markdown.js", markdown_js, sizeof markdown_js},
    {"metrics.js", metrics_js, sizeof metrics_js},
    {"operation.js", operation_js, sizeof operation_js},
    {"parts.css", parts_css, sizeof parts_css},
    {"parts.js", parts_js, sizeof parts_js},
    {"plot.js", plot_js, sizeof plot_js},
    {"questions.js", questions_js, sizeof questions_js},
    {"route.js", route_js, sizeof route_js},
    {"schema.js", schema_js, sizeof schema_js},
    {"segments.js", segments_js, sizeof segments_js},
    {"service.js", service_js, sizeof service_js},
    {"session.js", session_js, sizeof session_js},
    {"sessions.js", sessions_js, sizeof sessions_js},
    {"sets.js", sets_js, sizeof sets_js},
    {"setversion.js", setversion_js, sizeof setversion_js},
    {"shortcuts.js", shortcuts_js, sizeof shortcuts_js},
    {"signin.js", signin_js, sizeof signin_js},
    {"stream.js", stream_js, sizeof stream_js},
    {"task.js", task_js, sizeof task_js},
    {"tasks.js", tasks_js, sizeof tasks_js},
    {"tryit.js", tryit_js, sizeof tryit_js},
    {"views.css", views_css, sizeof views_css},
    {"watch.js", watch_js, sizeof watch_js},
    {"waterfall.js", waterfall_js, sizeof waterfall_js},
    {"words.js", words_js, sizeof words_js},
};
const size_t page_files_count = sizeof page_files / sizeof page_files[0];
