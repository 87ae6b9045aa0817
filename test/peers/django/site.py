"""The password reset of Django itself, with the settings for email that `postern auth-hook connect` prints."""

import os
import sys

from django.conf import settings

email = {}
exec(os.environ["EMAIL_SETTINGS"], email)
folder = os.environ["SITE_FOLDER"]
settings.configure(
    ALLOWED_HOSTS=["localhost"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.path.join(folder, "site.db")}},
    DEBUG=False,
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"],
    LOGIN_REDIRECT_URL="/accounts/password_change/",
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    ROOT_URLCONF=__name__,
    SECRET_KEY="only for this test",
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "DIRS": [folder],
            "APP_DIRS": False,
            "OPTIONS": {"context_processors": ["django.contrib.auth.context_processors.auth"]},
        }
    ],
    **{name: value for name, value in email.items() if name.startswith("EMAIL_")},
)

import django  # noqa: E402

django.setup()

from django.urls import include, path  # noqa: E402

urlpatterns = [path("accounts/", include("django.contrib.auth.urls"))]

FORM = '<form method="post">{% csrf_token %}{{ form.as_p }}<button>Send</button></form>'
PAGES = {
    "password_reset_form": FORM,
    "password_reset_done": "<h1>Sent</h1>",
    "password_reset_confirm": FORM,
    "password_reset_complete": "<h1>Changed</h1>",
    "login": FORM,
    "password_change_form": "<h1>Hello {{ user.username }}</h1>",
    # Django's own words, which its admin's folder has.
    "password_reset_email": "Somebody asked for a reset at {{ site_name }}:\n"
    "{{ protocol }}://{{ domain }}{% url 'password_reset_confirm' uidb64=uid token=token %}\n",
}

if __name__ == "__main__":
    from django.contrib.auth import get_user_model
    from django.core.management import call_command

    os.makedirs(os.path.join(folder, "registration"))
    for name, text in PAGES.items():
        with open(os.path.join(folder, "registration", name + ".html"), "w") as page:
            page.write(text)
    with open(os.path.join(folder, "registration", "password_reset_subject.txt"), "w") as subject:
        subject.write("Password reset")
    sys.modules["site_of_test"] = sys.modules[__name__]
    call_command("migrate", verbosity=0)
    get_user_model().objects.create_user("ada", "ada@example.com", "the old one")
    call_command("runserver", os.environ["SITE_PORT"], use_reloader=False)
