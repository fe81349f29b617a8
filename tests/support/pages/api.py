def page():
    return ""
